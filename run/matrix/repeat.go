package matrix

import (
	"bytes"
	"errors"
	"fmt"
	"sync"

	"kprobelab/internal/bounded"
)

// ErrDiffers: the run has not the same output as the first, although nothing varied.
var ErrDiffers = errors.New("its output or its exit code is not that of the first run")

// repeated is a matrix of runs on one kernel.
type repeated struct {
	// vary: each run has a seed of its own, and the first that fails is looked for. Else all runs have to be the same.
	vary bool

	mu sync.Mutex
	// first is whether the first run has ended; runs that are compared with it wait for it.
	first   bool
	waiting []*Cell
	found   *Cell
	// runs is how many of all runs have been judged. cut: the end of the context has ended the others, which say nothing.
	runs, all int
	cut       bool
}

// Repeat makes a matrix of n runs on one kernel. With vary, the runs have the seeds from seed on, and no more begin when
// one has failed; Run leaves the first run and the first that failed. Without it, all have this seed, and Run leaves the first
// run and the first that differs from it. Its error is ErrKernels.
func Repeat(kernel string, n int, seed int64, vary bool) (*Matrix, error) {
	if n < 1 || n > bounded.MatrixRepeats {
		return nil, fmt.Errorf("%w: %d runs, and 1 to %d are possible", ErrKernels, n, bounded.MatrixRepeats)
	}
	m := &Matrix{repeated: &repeated{vary: vary, all: n}}
	for i := range n {
		c := &Cell{Kernel: fmt.Sprintf("%s run %d", kernel, i+1), Label: fmt.Sprintf("run-%d", i+1), Seed: seed}
		if vary {
			c.Seed += int64(i)
			c.Kernel = fmt.Sprintf("%s seed %d", kernel, c.Seed)
		}
		m.Cells = append(m.Cells, c)
	}
	return m, nil
}

// over reports whether no more runs have to begin.
func (r *repeated) over() bool {
	if r == nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found != nil
}

// ended takes the end of a run, and forgets the output of a run that is as it should be. A run that was cut short is not judged.
func (r *repeated) ended(m *Matrix, c *Cell, cut bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if cut {
		r.cut = true
		return
	}
	r.waiting = append(r.waiting, c)
	if r.first = r.first || c == m.Cells[0]; !r.first && !r.vary {
		return
	}
	for _, w := range r.waiting {
		r.runs++
		r.judge(m, m.Cells[0], w)
	}
	r.waiting = nil
}

// notRun takes a run that does not begin: one is found, or the context has ended.
func (r *repeated) notRun(cut bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = r.cut || cut
}

// judge decides about a run that has ended, as the first one has.
func (r *repeated) judge(m *Matrix, first, c *Cell) {
	bad := c.Code != 0
	if !r.vary {
		bad = c.Code != first.Code || !bytes.Equal(c.Stdout.Bytes(), first.Stdout.Bytes()) || !bytes.Equal(c.Stderr.Bytes(), first.Stderr.Bytes())
	}
	switch {
	case bad && (r.found == nil || m.before(c, r.found)):
		r.found = c
	case c != first && c != r.found:
		c.Stdout, c.Stderr, c.events, c.records = bytes.Buffer{}, bytes.Buffer{}, bytes.Buffer{}, nil
	}
}

// before reports whether a comes before b in the order of runs.
func (m *Matrix) before(a, b *Cell) bool {
	for _, c := range m.Cells {
		if c == a || c == b {
			return c == a
		}
	}
	return false
}

// reduce leaves the first run, and the one that was found.
func (r *repeated) reduce(m *Matrix) {
	if r == nil {
		return
	}
	m.Cells = m.Cells[:1]
	c := r.found
	if c == nil || c == m.Cells[0] {
		return
	}
	m.Cells = append(m.Cells, c)
	if !r.vary && c.Err == nil {
		c.Err = ErrDiffers
		c.Code = max(c.Code, 1)
	}
}

// Repeated says what the runs of Repeat have shown, "" for runs on different kernels.
func (m *Matrix) Repeated() string {
	r := m.repeated
	switch {
	case r == nil:
		return ""
	case r.found == nil && r.runs == 0:
		return "ended before the first run had ended: nothing is compared"
	case r.found == nil && r.cut && r.vary:
		return fmt.Sprintf("ended after %d of %d runs with the seeds from %d on: none of these failed", r.runs, r.all, m.Cells[0].Seed)
	case r.found == nil && r.cut:
		return fmt.Sprintf("ended after %d of %d runs: these have the same bytes", r.runs, r.all)
	case r.found == nil && r.vary:
		return fmt.Sprintf("%d runs with the seeds from %d on: none failed", r.runs, m.Cells[0].Seed)
	case r.found == nil:
		return fmt.Sprintf("%d runs: the same bytes", r.runs)
	case r.vary:
		return fmt.Sprintf("seed %d fails with exit code %d; --seed %d --repeat 1 repeats it", r.found.Seed, r.found.Code, r.found.Seed)
	}
	return fmt.Sprintf("%s: %v", r.found.Kernel, ErrDiffers)
}
