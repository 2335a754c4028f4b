package matrix

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"kprobelab/internal/bounded"
	"kprobelab/run"
)

// ErrKernels: the kernels do not make a matrix.
var ErrKernels = errors.New("no kernels for a matrix")

// ErrEnded: the matrix was ended before the run on this kernel began.
var ErrEnded = errors.New("not run: the matrix was ended before")

// Cell is the run on one kernel. The function that Run calls fills it in.
type Cell struct {
	// Kernel is the kernel's name, as the user wrote it. Label is a name of the same that can be part of a file's.
	Kernel, Label string
	// Seed is the seed of the run, if the matrix repeats one.
	Seed int64
	// Release is the kernel's release. Without it, the kernel did not run.
	Release string
	// Code is the exit code. Err says why the program did not run to its end; nil if it did.
	Code int
	Err  error
	// Stdout and Stderr are what the run on this kernel alone would print.
	Stdout, Stderr bytes.Buffer
	// Took is the real time of the run.
	Took time.Duration

	events  bytes.Buffer
	records *run.JSON
}

// Ran reports whether there was a kernel to run on.
func (c *Cell) Ran() bool { return c.Release != "" }

// Records returns a sink for the events, which JSON gives. It keeps most bytes of what a guest can make endless.
func (c *Cell) Records(most uint64) run.Sink {
	c.records = run.NewJSON(&c.events)
	return run.Capped(c.records, most, func() uint64 { return uint64(c.records.Buffered() + c.events.Len()) })
}

// Matrix is the runs on all kernels, in the order in which the kernels were named.
type Matrix struct {
	Cells []*Cell
	// repeated is nil for runs on different kernels.
	repeated *repeated
}

// New makes a matrix, whose kernels did not run yet. Its error is ErrKernels.
func New(kernels []string) (*Matrix, error) {
	if len(kernels) == 0 || len(kernels) > bounded.MatrixKernels {
		return nil, fmt.Errorf("%w: %d are named, and 1 to %d are possible", ErrKernels, len(kernels), bounded.MatrixKernels)
	}
	m, labels := &Matrix{}, map[string]bool{}
	for i, k := range kernels {
		if slices.Contains(kernels[:i], k) {
			return nil, fmt.Errorf("%w: %q is named twice", ErrKernels, k)
		}
		label := labelOf(k)
		for n := 2; labels[label]; n++ {
			label = fmt.Sprintf("%s-%d", labelOf(k), n)
		}
		labels[label] = true
		m.Cells = append(m.Cells, &Cell{Kernel: k, Label: label})
	}
	return m, nil
}

// labelOf makes a part of a file's name of a kernel's: of a path the last element, without .core.
func labelOf(kernel string) string {
	word := strings.ReplaceAll(kernel, "/", "-")
	if filepath.IsAbs(kernel) || strings.Contains(kernel, ".core") || strings.HasPrefix(kernel, ".") {
		word = strings.TrimSuffix(filepath.Base(kernel), ".core")
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == 0x7f || strings.ContainsRune(`\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, word)
}

// Run calls do for each kernel, for as many at once as there are processors, and returns after the last call. After the end
// of ctx it makes no more calls; each do ends its own run. A kernel that fails does not stop the others.
func (m *Matrix) Run(ctx context.Context, do func(ctx context.Context, c *Cell)) {
	var all sync.WaitGroup
	next := make(chan *Cell)
	for range min(runtime.GOMAXPROCS(0), len(m.Cells)) {
		all.Go(func() {
			for c := range next {
				began := time.Now()
				do(ctx, c)
				c.Took = time.Since(began)
				m.repeated.ended(m, c, ctx.Err() != nil)
			}
		})
	}
	for _, c := range m.Cells {
		if ctx.Err() == nil && !m.repeated.over() {
			select {
			case next <- c:
				continue
			case <-ctx.Done():
			}
		}
		c.Code, c.Err = 1, ErrEnded
		m.repeated.notRun(ctx.Err() != nil)
	}
	close(next)
	all.Wait()
	m.repeated.reduce(m)
	for _, c := range m.Cells {
		if c.records != nil {
			_ = c.records.Flush() // to memory
		}
	}
}

// Code is the first exit code that is not 0, in the order of the kernels; 0 if there is none.
func (m *Matrix) Code() int {
	for _, c := range m.Cells {
		if c.Code != 0 {
			return c.Code
		}
	}
	return 0
}

// Base is the first kernel that ran, nil if none did. The others are compared with it.
func (m *Matrix) Base() *Cell {
	if i := slices.IndexFunc(m.Cells, (*Cell).Ran); i >= 0 {
		return m.Cells[i]
	}
	return nil
}
