package archive

import (
	"runtime"
	"sync"

	"kprobelab/internal/report"
)

// Check adds to c a column for each file, in their order. Several processors share the
// files; each has one kernel in memory. done, when not nil, is told after each file. Files that
// cannot be read have no column, and the errors say which they are.
func Check(c *report.Check, files []string, probes []report.Probe, done func(n int)) (unread []error) {
	columns := make([]report.Check, len(files))
	for i := range columns {
		columns[i].Allow = c.Allow
	}
	errs := make([]error, len(files))
	next := make(chan int)
	var workers sync.WaitGroup
	var mu sync.Mutex
	n := 0
	for range min(runtime.GOMAXPROCS(0), len(files), maxAtOnce) {
		workers.Go(func() {
			for i := range next {
				errs[i] = checkOne(&columns[i], files[i], probes)
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
	for i := range columns {
		if errs[i] != nil {
			unread = append(unread, errs[i])
			continue
		}
		c.Join(&columns[i])
	}
	return unread
}

// maxAtOnce bounds how many kernels are in memory, some 30 MB each.
const maxAtOnce = 4

func checkOne(c *report.Check, file string, probes []report.Probe) error {
	k, err := Open(file)
	if err != nil {
		return err
	}
	c.Add(k, probes)
	return k.Err()
}
