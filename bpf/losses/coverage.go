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
	// copyOf is the same for copies of one place of the source.
	copyOf operation
	n      uint64
	of     *program
}

// operation is a column of a line, and the instruction that is first there. A compiler makes several copies of a line, in
// unrolled loops and inlined functions, and parts a line, whose instructions it puts between others'.
type operation struct {
	column uint32
	code   uint64
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
		place := w.o.Word(of + lineColumn)
		c.at[at] = &lineStart{
			file: w.o.String(texts+x86.Addr(w.o.Word(of+fileName)), 4096), line: place >> 10, of: p,
			copyOf: operation{place & (1<<10 - 1), unplaced(uint64(w.o.Pointer(at)))},
		}
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

// unplaced is the beginning of an instruction without the distance of a jump or a call, which differs from copy to copy.
func unplaced(code uint64) uint64 {
	switch first := code & 0xff; {
	case first == 0xe8, first == 0xe9, first == 0xeb, first&0xf0 == 0x70:
		return first
	case code&0xf0ff == 0x800f:
		return code & 0xffff
	}
	return code
}

// freed gives the counts of a program to Lines. Copies of a place are added up; of the parts of a line, the one that ran most
// often is the line's count.
func (c *coverage) freed(p *program) {
	if !c.loadedNow[p] {
		return
	}
	delete(c.loadedNow, p)
	type source struct {
		file string
		line uint32
	}
	copies, counts := map[source]map[operation]uint64{}, map[source]uint64{}
	for at, s := range c.at {
		if s.of != p {
			continue
		}
		line := source{s.file, s.line}
		if copies[line] == nil {
			copies[line] = map[operation]uint64{}
		}
		copies[line][s.copyOf] += s.n
		counts[line] = max(counts[line], copies[line][s.copyOf])
		delete(c.at, at)
	}
	for line, n := range counts {
		c.to.add(line.file, line.line, n)
	}
}

// end gives the counts of all programs to Lines.
func (c *coverage) end() {
	for p := range c.loadedNow {
		c.freed(p)
	}
}
