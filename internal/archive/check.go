package archive

import (
	"runtime"
	"runtime/debug"
	"sync"

	"kprobelab/internal/report"
	"kprobelab/kprobes/hazard"
)

// Check asks the kernel of each file, and returns the columns in the order of the files. Several processors share the
// files; each has one kernel in memory. done, when not nil, is told after each file.
func Check(files []string, probes []report.Probe, allow map[hazard.ID]bool, done func(n int)) []report.Column {
	// Each kernel is garbage when the next one is read: a third less memory for a tenth more time.
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	columns := make([]report.Column, len(files))
	next := make(chan int)
	var workers sync.WaitGroup
	var mu sync.Mutex
	n := 0
	for range min(runtime.GOMAXPROCS(0), len(files), maxAtOnce) {
		workers.Go(func() {
			for i := range next {
				columns[i] = checkOne(files[i], probes, allow)
				mu.Lock()
				if n++; done != nil {
					done(n)
				}
				mu.Unlock()
			}
		})
	}
	for i := range files {
		next <- i
	}
	close(next)
	workers.Wait()
	return columns
}

// maxAtOnce bounds how many kernels are in memory, some 30 MB each.
const maxAtOnce = 4

func checkOne(file string, probes []report.Probe, allow map[hazard.ID]bool) report.Column {
	k, err := Open(file)
	if err != nil {
		return report.Column{Unread: err}
	}
	c := &report.Check{Allow: allow}
	c.Add(k, probes)
	return report.Column{Check: c, Unread: k.Err()}
}
