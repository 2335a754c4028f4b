package report

import (
	"fmt"
	"io"
	"runtime"
	"sync"

	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
)

// WriteFunctions writes a row for every instruction of the functions, in their
// order, and returns the totals. The error is w's.
func (s *Scan) WriteFunctions(w io.Writer, f ScanFormat, functions []kimage.Symbol) (*ScanTotals, error) {
	return s.write(w, f, functionNames(functions), codeChunks(functions, s.chunk(chunkCode)), func(s *scanner, c chunk, emit func(*ScanRow)) {
		function := s.function
		if s.Bare {
			function = s.bareScanner().function
		}
		for _, sym := range functions[c.from:c.to] {
			function(sym, emit)
		}
	})
}

// WriteEntries writes a row for the entry of each function.
func (s *Scan) WriteEntries(w io.Writer, f ScanFormat, functions []kimage.Symbol) (*ScanTotals, error) {
	return s.write(w, f, functionNames(functions), evenChunks(len(functions), int(s.chunk(chunkPoints))), func(s *scanner, c chunk, emit func(*ScanRow)) {
		for i := c.from; i < c.to; i++ {
			row := s.row(probepoint.Request{Addr: functions[i].Addr}, s.SlotAddr, nil)
			emit(&row)
		}
	})
}

// WritePoints writes a row for each point of a list that ReadPoints read.
func (s *Scan) WritePoints(w io.Writer, f ScanFormat, points []ScanPoint) (*ScanTotals, error) {
	name := func(i int) string { return fmt.Sprint(points[i]) }
	return s.write(w, f, name, evenChunks(len(points), int(s.chunk(chunkPoints))), func(s *scanner, c chunk, emit func(*ScanRow)) {
		for i := c.from; i < c.to; i++ {
			row := s.point(points[i])
			emit(&row)
		}
	})
}

// functionNames names functions by their places.
func functionNames(list []kimage.Symbol) func(i int) string {
	return func(i int) string { return fmt.Sprintf("%s %d", list[i].Addr, list[i].Size) }
}

// chunk is a piece of a scan's input, [from, to), that one processor takes.
// size is its share of the progress.
type chunk struct {
	from, to int
	size     int64
}

// chunkCode is the number of bytes of code in a chunk, chunkPoints the number of
// points: some milliseconds of work.
const (
	chunkCode   = 32 << 10
	chunkPoints = 512
	// ownShare is the factor by which the image's own functions are slower than the rules.
	ownShare = 64
)

// chunk returns the size of a chunk: slow work is cut into smaller ones, so that progress is shown.
func (s *Scan) chunk(most int64) int64 {
	if s.Own != nil {
		return most / ownShare
	}
	return most
}

func codeChunks(functions []kimage.Symbol, most int64) (list []chunk) {
	var c chunk
	for i := range functions {
		c.size += int64(functions[i].Size)
		if c.to = i + 1; c.size >= most || c.to == len(functions) {
			list = append(list, c)
			c = chunk{from: i + 1}
		}
	}
	return list
}

func evenChunks(n, most int) (list []chunk) {
	for i := 0; i < n; i += most {
		to := min(i+most, n)
		list = append(list, chunk{i, to, int64(to - i)})
	}
	return list
}

// written is the output of a chunk.
type written struct {
	text   []byte
	totals *ScanTotals
}

// write runs the chunks on all processors and writes what they give in order. name names an item of the chunks.
func (s *Scan) write(w io.Writer, f ScanFormat, name func(i int) string, chunks []chunk, rows func(*scanner, chunk, func(*ScanRow))) (*ScanTotals, error) {
	totals := newTotals()
	totals.Listed = s.Padding
	chunks, to, err := s.begin(w, f, chunks, name)
	if err != nil {
		return totals, err
	}
	var done, total int64
	for _, c := range chunks {
		total += c.size
	}
	scanners := sync.Pool{New: func() any { return s.scanner() }}
	err = inOrder(len(chunks), func(i int) written {
		one := scanners.Get().(*scanner)
		defer scanners.Put(one)
		return s.formatted(f, func(emit func(*ScanRow)) { rows(one, chunks[i], emit) })
	}, func(i int, r written) error {
		totals.add(r.totals)
		if done += chunks[i].size; s.Progress != nil {
			s.Progress(done, total)
		}
		return to.put(r)
	})
	if err == nil {
		err = to.end()
	}
	return totals, err
}

func (s *Scan) formatted(f ScanFormat, rows func(func(*ScanRow))) written {
	r := written{totals: newTotals()}
	rows(func(row *ScanRow) {
		if row.padding {
			r.totals.Padding++
			if !s.Padding {
				return
			}
		}
		if s.Bare {
			if r.totals.Bare.count(row); row.right {
				return
			}
		}
		r.totals.count(row)
		r.text = f.appendRow(r.text, row, s)
	})
	return r
}

// inOrder calls do for 0 to n-1 on all processors, and emit with the results
// in order, one at a time. It stops at emit's first error and returns it.
func inOrder[T any](n int, do func(int) T, emit func(int, T) error) error {
	type job struct {
		i   int
		out chan<- T
	}
	workers := runtime.GOMAXPROCS(0)
	jobs, stop := make(chan job), make(chan struct{})
	results := make(chan (<-chan T), 4*workers)
	go func() {
		defer close(jobs)
		defer close(results)
		for i := range n {
			out := make(chan T, 1)
			select {
			case jobs <- job{i, out}:
			case <-stop:
				return
			}
			select {
			case results <- out:
			case <-stop:
				return
			}
		}
	}()
	for range workers {
		go func() {
			for j := range jobs {
				j.out <- do(j.i)
			}
		}()
	}
	i := 0
	for out := range results {
		if err := emit(i, <-out); err != nil {
			close(stop)
			return err
		}
		i++
	}
	return nil
}
