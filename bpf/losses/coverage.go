package losses

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// Lines counts the executions of source lines of BPF programs, of several programs and kernels together. The zero value has
// none. It is for several goroutines at once.
type Lines struct {
	mu    sync.Mutex
	files map[string]map[uint32]uint64
}

// add adds executions of a line; n may be 0, for a line that did not run.
func (l *Lines) add(file string, line uint32, n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.files == nil {
		l.files = map[string]map[uint32]uint64{}
	}
	if l.files[file] == nil {
		l.files[file] = map[uint32]uint64{}
	}
	l.files[file][line] += n
}

// Count returns how often a line ran; known is false for a line that no program has.
func (l *Lines) Count(file string, line uint32) (n uint64, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, known = l.files[file][line]
	return n, known
}

// Write writes the lines as lcov's trace file (geninfo(1)).
func (l *Lines) Write(to io.Writer) error {
	return l.Save(func(b []byte) error {
		_, err := to.Write(b)
		return err
	})
}

// Save calls write with lcov's trace file. No other call of Save comes between.
func (l *Lines) Save(write func([]byte) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := &bytes.Buffer{}
	for _, file := range slices.Sorted(maps.Keys(l.files)) {
		fmt.Fprintf(w, "TN:\nSF:%s\n", file)
		hit := 0
		for _, line := range slices.Sorted(maps.Keys(l.files[file])) {
			n := l.files[file][line]
			if n > 0 {
				hit++
			}
			fmt.Fprintf(w, "DA:%d,%d\n", line, n)
		}
		fmt.Fprintf(w, "LF:%d\nLH:%d\nend_of_record\n", len(l.files[file]), hit)
	}
	return write(w.Bytes())
}

// coverage counts the lines of the programs that are loaded now.
type coverage struct {
	w  *Watch
	to *Lines
	// at are the first instructions of lines in the machine code.
	at map[x86.Addr]*lineStart
	// seen are the observed instructions, which stay so when a program goes.
	seen map[x86.Addr]bool
	// loadedNow are the programs that are loaded.
	loadedNow map[*program]bool
}

// lineStart is the address of a line's first instruction, or of the first one after another line's.
type lineStart struct {
	file string
	line uint32
	n    uint64
	of   *program
}

func newCoverage(w *Watch, to *Lines) *coverage {
	return &coverage{w: w, to: to, at: map[x86.Addr]*lineStart{}, seen: map[x86.Addr]bool{}, loadedNow: map[*program]bool{}}
}

// loaded reads the lines of a program (struct bpf_line_info), and where their instructions begin in its machine code.
func (c *coverage) loaded(p *program) {
	w := c.w
	if !w.l.has("bpf_prog_aux.linfo", "bpf_prog_aux.jited_linfo", "bpf_prog_aux.nr_linfo", "bpf_prog_aux.btf", "btf.strings") {
		w.note("this kernel does not say which lines programs have")
		return
	}
	info, jited := w.o.Pointer(p.aux+w.l["bpf_prog_aux.linfo"]), w.o.Pointer(p.aux+w.l["bpf_prog_aux.jited_linfo"])
	n := int(w.o.Word(p.aux + w.l["bpf_prog_aux.nr_linfo"]))
	types := w.o.Pointer(p.aux + w.l["bpf_prog_aux.btf"])
	if info == 0 || jited == 0 || types == 0 {
		return // compiled without -g
	}
	texts := w.o.Pointer(types + w.l["btf.strings"])
	c.loadedNow[p] = true
	const lineInfo, fileName, lineColumn = 16, 4, 12
	for i := range min(n, bounded.BPFLines) {
		at := w.o.Pointer(jited + x86.Addr(8*i))
		if at < p.image.Start || at >= p.image.End || c.at[at] != nil {
			continue
		}
		of := info + x86.Addr(lineInfo*i)
		if w.o.Word(of+lineColumn)>>10 == 0 {
			continue // the compiler's own
		}
		c.at[at] = &lineStart{file: w.o.String(texts+x86.Addr(w.o.Word(of+fileName)), 4096), line: w.o.Word(of+lineColumn) >> 10, of: p}
		if c.seen[at] {
			continue
		}
		c.seen[at] = true
		ok := w.o.On(at, func(*x86.PtRegs) {
			if s := c.at[at]; s != nil && !w.ended {
				s.n++
			}
		})
		if !ok {
			delete(c.at, at)
			w.note("not all lines of %s are counted: the machine has no room to observe more instructions", p.name)
		}
	}
}

// freed gives the counts of a program to Lines. The count of a line is the one of its place that ran most often.
func (c *coverage) freed(p *program) {
	if !c.loadedNow[p] {
		return
	}
	delete(c.loadedNow, p)
	type key struct {
		file string
		line uint32
	}
	counts := map[key]uint64{}
	for at, s := range c.at {
		if s.of == p {
			k := key{s.file, s.line}
			counts[k] = max(counts[k], s.n)
			delete(c.at, at)
		}
	}
	for k, n := range counts {
		c.to.add(k.file, k.line, n)
	}
}

// end gives the counts of all programs to Lines.
func (c *coverage) end() {
	for p := range c.loadedNow {
		c.freed(p)
	}
}
