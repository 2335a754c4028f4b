package explore

import (
	"encoding/binary"
	"fmt"
	"strings"

	"kprobelab/decoder"
	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Where things are in the memory of a world.
const (
	textBase  x86.Addr = 0xffffffff81000000
	execBase  x86.Addr = 0xffffffffc0000000
	stackBase x86.Addr = 0xffffc90000000000
	textSize           = 4096
	stackSize          = 2048
	execPages          = 24
	pageSize           = 4096
	// magic is the return address of calls.
	magic x86.Addr = 0xffffffffdeadbee0
	// gap is the number of no-operations after each function.
	gap = 16
)

// program is a scenario's text, assembled once.
type program struct {
	s       *Scenario
	text    [textSize]byte
	end     int
	symbols []kimage.Symbol
	sites   map[string]*site
	// fentry are the sites of the function tracer.
	fentry map[x86.Addr]bool
	// insns are the original instructions by their offset.
	insns map[int]string
	// results has the result of each function without probes.
	results map[resultKey]result
}

// site is a place that another part of the kernel patches.
type site struct {
	at       x86.Addr
	nop, jmp []byte
	target   x86.Addr
}

// assembleAll lays the functions out.
func assembleAll(s *Scenario) (*program, error) {
	p := &program{s: s, sites: map[string]*site{}, fentry: map[x86.Addr]bool{}, insns: map[int]string{}, results: map[resultKey]result{}}
	starts := map[string]int{}
	for pass := range 2 {
		p.end = 0
		for _, f := range s.Funcs {
			if pass == 0 {
				starts[f.Name] = p.end
			}
			at := p.end
			for _, in := range f.insns {
				b, err := assemble(in, at, func(name string) (int, bool) { n, ok := starts[name]; return n, ok || pass == 0 })
				if err != nil {
					return nil, fmt.Errorf("text %s: %w", f.Name, err)
				}
				if string(b) == "\xcc" { // padding, which nobody executes
					p.insns[at], p.text[at] = string(b), b[0]
					at++
					continue
				}
				if _, n := decode(append(append([]byte{}, b...), make([]byte, 15)...)); n != len(b) {
					return nil, fmt.Errorf("text %s: %s (%x) is not among the instructions that CPUs here know", f.Name, in, b)
				}
				if at+len(b)+gap+96 > textSize {
					return nil, fmt.Errorf("the functions are more than %d bytes", textSize)
				}
				copy(p.text[at:], b)
				p.insns[at] = string(b)
				if in == "fentry" {
					p.fentry[textBase.Add(int64(at))] = true
				}
				at += len(b)
			}
			for range gap {
				p.text[at] = 0x90
				p.insns[at] = "\x90"
				at++
			}
			p.end = (at + 15) &^ 15
			for ; at < p.end; at++ {
				p.text[at] = 0x90
				p.insns[at] = "\x90"
			}
			if pass == 1 {
				p.symbols = append(p.symbols, kimage.Symbol{
					Name: f.Name, Addr: textBase.Add(int64(starts[f.Name])), Size: uint64(p.end - starts[f.Name]), Type: 'T', Module: s.moduleOf(f.Name),
				})
			}
		}
	}
	return p, p.checkPlaces(starts)
}

func (p *program) checkPlaces(starts map[string]int) error {
	for _, d := range p.s.Probes {
		if starts[d.Func]+d.Off >= p.end {
			return fmt.Errorf("probe %s is after the end of the text", d.Name)
		}
	}
	for _, d := range p.s.Sites {
		at, to := starts[d.Func]+d.Off, starts[d.Func]+d.To
		if p.insns[at] != mustHex(nop5) {
			return fmt.Errorf("site %s: there is no nop5", d.Name)
		}
		if _, ok := p.insns[to]; !ok || to >= p.end {
			return fmt.Errorf("site %s leads inside an instruction", d.Name)
		}
		rel := uint32(int32(to - at - 5))
		s := &site{at: textBase.Add(int64(at)), target: textBase.Add(int64(to)), nop: []byte(p.insns[at])}
		s.jmp = binary.LittleEndian.AppendUint32([]byte{0xe9}, rel)
		p.sites[d.Name] = s
	}
	return nil
}

func mustHex(h string) string {
	b, err := assemble(h, 0, nil)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(b)
}

// func is a function's address.
func (p *program) at(name string) x86.Addr {
	for _, s := range p.symbols {
		if s.Name == name {
			return s.Addr
		}
	}
	return 0
}

// symbolic names an address as FUNCTION+0xN.
func (p *program) symbolic(a x86.Addr) string {
	for _, s := range p.symbols {
		if off := a.Sub(s.Addr); off == 0 {
			return s.Name
		} else if off > 0 && off < int64(s.Size) {
			return fmt.Sprintf("%s+%d", s.Name, off)
		}
	}
	return a.String()
}

// world is one run's machine, with the subsystem on it.
type world struct {
	*program
	c     *profile.Config
	k     *kprobes.Kprobes
	mem0  []byte // the text as it is
	exec  []byte
	next  x86.Addr
	stack []byte
	cpus  []core
	cpu   int // the one that runs
	tasks []*task
	traps x86.Traps
	outs  map[x86.Addr]callout
	run   *run
	// gone are the modules whose text is freed, or not loaded to its end.
	gone map[string]bool
	// unlabelled is the module that is loaded now, whose jump labels are not known yet.
	unlabelled string
}

type callout struct {
	name string
	fn   func(x86.Addr, *x86.PtRegs)
}

// core is a CPU.
type core struct {
	// stale has the old values of bytes of text that changed since the CPU last synchronized.
	stale []staleByte
	// pending are interrupts that ask it to synchronize.
	pending int
	// debug is the task of the last #DB whose handler runs, nil if there is none.
	debug *task
}

type staleByte struct {
	at x86.Addr
	b  byte
}

var (
	_ kprobes.Machine = (*world)(nil)
	_ kprobes.Patcher = (*world)(nil)
	_ kprobes.Stepper = (*world)(nil)
	_ kimage.View     = (*world)(nil)
)

func newWorld(p *program, c *profile.Config, r *run) (*world, error) {
	n := p.s.cpus() + 1 // the last is the worker's
	w := &world{
		program: p, c: c, run: r, mem0: append([]byte(nil), p.text[:]...),
		exec: make([]byte, 0, 4*pageSize), next: execBase, outs: map[x86.Addr]callout{},
		cpus: make([]core, n),
	}
	w.gone = map[string]bool{}
	w.stack = make([]byte, stackSize*(len(p.s.Columns)+2))
	w.cpu = n - 1
	w.k = kprobes.New(w, w, c)
	return w, w.k.InitOptprobes()
}

// mem returns memory, nil if there is none at the address.
func (w *world) mem(a x86.Addr, n int) []byte {
	for _, r := range [...]struct {
		base x86.Addr
		b    []byte
	}{{textBase, w.mem0}, {execBase, w.exec}, {stackBase, w.stack}} {
		if off := a.Sub(r.base); off >= 0 && off+int64(n) <= int64(len(r.b)) {
			return r.b[off : off+int64(n)]
		}
	}
	return nil
}

func (w *world) isText(a x86.Addr) bool {
	return a.In(textBase, textBase.Add(textSize)) || a.In(execBase, execBase.Add(execPages*pageSize))
}

// NumCPU implements kprobes.Machine.
func (w *world) NumCPU() int { return len(w.cpus) }

// CPU implements kprobes.Machine.
func (w *world) CPU() int { return w.cpu }

// Task implements kprobes.Machine.
func (w *world) Task() int { return w.run.cur.n }

// Now implements kprobes.Machine.
func (w *world) Now() uint64 { return w.run.clock }

// ReadMem implements kprobes.Machine.
func (w *world) ReadMem(a x86.Addr, b []byte) error {
	m := w.mem(a, len(b))
	if m == nil {
		return errno.EFAULT
	}
	w.run.reads(a, len(b))
	copy(b, m)
	return nil
}

// WriteMem implements kprobes.Machine.
func (w *world) WriteMem(a x86.Addr, b []byte) error {
	m := w.mem(a, len(b))
	if m == nil || w.isText(a) {
		return errno.EFAULT
	}
	copy(m, b)
	return nil
}

// PokeText writes text that no CPU executes yet: slots and detour buffers.
func (w *world) PokeText(a x86.Addr, b []byte) error {
	m := w.mem(a, len(b))
	if m == nil || !w.isText(a) {
		return errno.EFAULT
	}
	w.run.touch(varProbe, true)
	w.run.writes(a, len(b))
	w.run.reuse(x86.Range{Start: a, End: a.Add(int64(len(b)))})
	copy(m, b)
	return nil
}

// PokeTextNoSync implements kprobes.Patcher: a store of a change of text.
func (w *world) PokeTextNoSync(a x86.Addr, b []byte) error {
	m := w.mem(a, len(b))
	if m == nil || !w.isText(a) {
		return errno.EFAULT
	}
	w.run.stop(pending{kind: "store", at: a, note: fmt.Sprintf("% x", b), bytes: b, reads: []int{varModule}})
	if m := w.moduleAt(a); m != "" && w.gone[m] {
		w.run.fail(UseAfterFree, "%s writes the text of module %s at %s, which was freed", w.run.cur.name, m, w.where(a))
	}
	w.run.writes(a, len(b))
	for c := range w.cpus {
		w.run.touch(varStale+c, true)
	}
	for i := range b {
		for c := range w.cpus {
			if c != w.cpu {
				w.cpus[c].stale = append(w.cpus[c].stale, staleByte{a.Add(int64(i)), m[i]})
			}
		}
	}
	copy(m, b)
	return nil
}

// SyncCore implements kprobes.Patcher: it asks a CPU to synchronize. The caller
// waits when it has asked all.
func (w *world) SyncCore(cpu int) {
	c := &w.cpus[cpu]
	if cpu == 0 {
		w.run.stop(pending{kind: "sync"})
	}
	if cpu == len(w.cpus)-1 {
		defer w.synchronized()
	}
	w.run.touch(varStale+cpu, true)
	if cpu == w.cpu || !w.executing(cpu) {
		c.stale = c.stale[:0] // here, or in an idle CPU's next instruction
		return
	}
	c.pending++
	w.run.cur.asked = append(w.run.cur.asked, cpu)
}

// synchronized waits until every CPU that was asked has acknowledged.
func (w *world) synchronized() {
	if len(w.run.cur.asked) > 0 {
		w.run.stop(pending{kind: "all have synchronized"})
	}
}

// TaskSwitches implements kprobes.Patcher.
func (w *world) TaskSwitches(n int) (uint64, bool, bool) {
	if n >= len(w.tasks) {
		return 0, false, false
	}
	w.run.touch(varTasks, false)
	t := w.tasks[n]
	return t.calls, t.calling, true
}

// AllocExec implements kprobes.Machine.
func (w *world) AllocExec(size int, _ string) (x86.Addr, error) {
	n := (size + 15) &^ 15
	if size > 512 {
		n = (size + pageSize - 1) &^ (pageSize - 1)
	}
	w.run.touch(varProbe, true)
	if len(w.exec)+n > execPages*pageSize {
		return 0, errno.ENOMEM
	}
	at := execBase.Add(int64(len(w.exec)))
	w.exec = append(w.exec, make([]byte, n)...)
	return at, nil
}

// Callout implements kprobes.Machine.
func (w *world) Callout(symbol string, fn func(x86.Addr, *x86.PtRegs)) (x86.Addr, error) {
	at, err := w.AllocExec(16, symbol)
	w.outs[at] = callout{strings.TrimSuffix(symbol, ".out"), fn}
	return at, err
}

// GSBase implements kprobes.Machine.
func (w *world) GSBase(cpu int) x86.Addr { return stackBase.Add(int64(cpu) * 64) }

// SetTraps implements kprobes.Machine.
func (w *world) SetTraps(t x86.Traps) { w.traps = t }

// CodeAt implements kimage.View.
func (w *world) CodeAt(a x86.Addr, b []byte) int {
	off := a.Sub(textBase)
	if off < 0 || off >= int64(w.end) {
		return 0
	}
	return copy(b, w.text[off:w.end])
}

// SymbolAt implements kimage.View.
func (w *world) SymbolAt(a x86.Addr) (kimage.Symbol, bool) {
	for _, s := range w.symbols {
		if a.In(s.Addr, s.Addr.Add(int64(s.Size))) {
			return s, true
		}
	}
	return kimage.Symbol{}, false
}

// Lookup implements kimage.View.
func (w *world) Lookup(name string) []kimage.Symbol {
	for i, s := range w.symbols {
		if s.Name == name {
			return w.symbols[i : i+1]
		}
	}
	return nil
}

// InText implements kimage.View.
func (w *world) InText(a x86.Addr) bool { return a.In(textBase, textBase.Add(int64(w.end))) }

// InEntryText implements kimage.View.
func (w *world) InEntryText(x86.Addr) bool { return false }

// InInit implements kimage.View.
func (w *world) InInit(x86.Addr) (string, bool) { return "", false }

// Blacklisted implements kimage.View.
func (w *world) Blacklisted(x86.Addr) (x86.Range, bool) { return x86.Range{}, false }

// ExceptionEntry implements kimage.View.
func (w *world) ExceptionEntry(x86.Addr) (x86.Addr, bool) { return 0, false }

// BugEntry implements kimage.View.
func (w *world) BugEntry(x86.Addr) bool { return false }

// CFITrap implements kimage.View.
func (w *world) CFITrap(x86.Addr) bool { return false }

// SiteAt implements kimage.View.
func (w *world) SiteAt(kind kimage.SiteKind, a x86.Addr) (kimage.Site, bool) {
	return w.SiteIn(kind, x86.Range{Start: a, End: a + 1})
}

// SiteIn implements kimage.View.
func (w *world) SiteIn(kind kimage.SiteKind, r x86.Range) (kimage.Site, bool) {
	for at := range w.fentry {
		if kind == kimage.SiteFtrace && r.Overlaps(x86.Range{Start: at, End: at + 5}) {
			return kimage.Site{Addr: at, Len: 5}, true
		}
	}
	for _, s := range w.sites {
		if m := w.moduleAt(s.at); m != "" && w.unlabelled == m {
			continue
		}
		if kind == kimage.SiteJumpLabel && r.Overlaps(x86.Range{Start: s.at, End: s.at + 5}) {
			return kimage.Site{Addr: s.at, Len: 5}, true
		}
	}
	return kimage.Site{}, false
}

// IndirectThunks implements kimage.View.
func (w *world) IndirectThunks() x86.Range { return x86.Range{} }

// Reader implements kimage.View.
func (w *world) Reader() decoder.Reader { return decoder.X86asm{} }

// Processor implements kimage.View.
func (w *world) Processor() kimage.Processor { return decoder.Processor{} }

// frame reads a register frame from memory, and putFrame writes it.
func (w *world) frame(at x86.Addr) (*x86.PtRegs, []byte) {
	b := w.mem(at, x86.PtRegsSize)
	if b == nil {
		return nil, nil
	}
	r := &x86.PtRegs{}
	for i, p := range words(r) {
		*p = binary.LittleEndian.Uint64(b[8*i:])
	}
	return r, b
}

// putChanged writes the registers that have changed: the others may have been changed in memory.
func putChanged(was, r *x86.PtRegs, b []byte) {
	old := words(was)
	for i, p := range words(r) {
		if *p != *old[i] {
			binary.LittleEndian.PutUint64(b[8*i:], *p)
		}
	}
}

func words(r *x86.PtRegs) [21]*uint64 {
	return [21]*uint64{
		&r.R15, &r.R14, &r.R13, &r.R12, &r.BP, &r.BX, &r.R11, &r.R10, &r.R9, &r.R8,
		&r.AX, &r.CX, &r.DX, &r.SI, &r.DI, &r.OrigAX, &r.IP, &r.CS, &r.Flags, &r.SP, &r.SS,
	}
}
