package run

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"kprobelab"
	"kprobelab/decoder"
	"kprobelab/internal/bounded"
	"kprobelab/internal/film"
	"kprobelab/internal/session"
	"kprobelab/internal/steptext"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/watch"
	"kprobelab/x86"
)

// Film writes the states of a kernel's run to a file for the page: after each step of a hit and of the optimizer, and at
// each instruction of the probed functions. The plan has to ask for Steps.
type Film struct {
	to  io.Writer
	w   *film.Writer
	err error

	lab   *kprobelab.Lab
	names Names
	// now is the last state. code are its functions, without slots and detour buffers.
	now  film.State
	code []film.Code
	// probes has all probes in the order of their registration, the removed ones too.
	probes []*filmed
	// ran is the machine's count of instructions at the last state.
	ran uint64
	// worker: the optimizer's worker runs.
	worker bool
	// named are the symbols that the film has, instructions the addresses that are states when they are executed.
	named, instructions map[x86.Addr]bool
}

// filmed is a probe in a film.
type filmed struct {
	film.Probe
	addr x86.Addr
	gone bool
}

// filmStack is the number of words of a stack in a film, filmFunctions the most functions that are shown by instruction.
const (
	filmStack     = 10
	filmFunctions = 8
)

// NewFilm makes a Film that writes to w. The caller closes it.
func NewFilm(w io.Writer) *Film {
	return &Film{to: w, named: map[x86.Addr]bool{}, instructions: map[x86.Addr]bool{}}
}

// Put implements Sink.
func (f *Film) Put(e Event) error {
	if s, ok := e.(Started); ok {
		f.err = errors.Join(f.err, f.start(&s))
	}
	if f.w == nil {
		return nil
	}
	switch e := e.(type) {
	case Planted:
		f.planted(&e.Probe)
	case RefusedProbe:
		f.add("module", -1, fmt.Sprintf("%s %s is refused: %v", e.Probe.Kind, e.Probe.Text, e.Err))
	case Step:
		f.step(&e)
	case Hit:
		if !e.Post {
			f.count(e.Probe)
		}
	case Returned:
		f.count(e.Probe)
	case Logged:
		f.now.Log = append(f.now.Log, e.From+": "+e.Line)
	case Called:
		f.add(f.cpu(), f.lab.Machine.CPU(), e.Call+" has returned "+e.Result)
	case Failed:
		f.add(f.cpu(), f.lab.Machine.CPU(), fmt.Sprintf("%s has failed: %v", e.Call, e.Err))
	case Exited:
		f.add(f.cpu(), f.lab.Machine.CPU(), fmt.Sprintf("%s has ended with exit code %d", e.Program, e.Code))
	case Removed:
		f.removed(&e.Probe)
	}
	return nil
}

// Close writes what is left, whether the run has started or not.
func (f *Film) Close() error {
	if f.w != nil {
		f.err = errors.Join(f.err, f.w.Close())
	}
	return f.err
}

func (f *Film) start(e *Started) (err error) {
	if e.Lab == nil {
		return errors.New("a film is of a kernel")
	}
	f.lab, f.names = e.Lab, e.Names
	img := f.lab.Image
	f.w, err = film.NewWriter(f.to, film.Head{
		Name: filepath.Base(img.Name()), Release: img.Release(), Build: img.BuildID(), Rules: img.Profile().Name, CPUs: f.lab.Machine.NumCPU(),
	})
	if err != nil {
		f.w = nil
		return err
	}
	f.now.CPUs = make([]film.CPU, f.lab.Machine.NumCPU())
	f.ran = f.lab.Machine.Instructions()
	f.lab.Kprobes.ObserveOptimizer(f.optimizer)
	f.lab.Machine.OnExecuted(f.executed)
	f.add("module", -1, "the kernel as it was before the probes")
	return nil
}

func (f *Film) cpu() string { return fmt.Sprintf("CPU %d", f.lab.Machine.CPU()) }

// find returns the probe of an event, nil if it was not planted.
func (f *Film) find(p *Probe) *filmed {
	for _, q := range f.probes {
		if q.Text == p.Kind+" "+p.Text {
			return q
		}
	}
	return nil
}

func (f *Film) planted(p *Probe) {
	if p.Addr == nil || p.Watched != nil {
		return
	}
	q := &filmed{Probe: film.Probe{Text: p.Kind + " " + p.Text, At: film.Word(*p.Addr)}, addr: *p.Addr}
	f.probes = append(f.probes, q)
	f.function(*p.Addr, true)
	f.worker = false
	f.add("module", -1, fmt.Sprintf("the module has registered %s at %s", q.Text, f.place(*p.Addr)))
}

func (f *Film) removed(p *Probe) {
	q := f.find(p)
	if q == nil {
		return
	}
	q.gone = true
	if p.Missed != nil {
		q.Missed = *p.Missed
	}
	f.worker = false
	f.add("module", -1, "the module has unregistered "+q.Text)
}

func (f *Film) count(p *Probe) {
	if q := f.find(p); q != nil {
		q.Hits++
	}
}

func (f *Film) step(e *Step) {
	if e.hit == nil {
		return
	}
	if e.hit.Probe != nil {
		f.function(e.hit.Probe.Addr, false)
	}
	f.seen(e.Where.CPU, e.Where.Task, e.Regs, true)
	f.add(fmt.Sprintf("CPU %d", e.Where.CPU), e.Where.CPU, e.Words)
}

// optimizer takes a step of the optimizer.
func (f *Film) optimizer(e kprobes.OptEvent) {
	f.worker = f.worker || e.Kind == kprobes.OptWorker
	who := "module"
	if f.worker {
		who = "worker"
	}
	text := steptext.Optimizer(&e)
	if e.Addr != 0 {
		text = f.place(e.Addr) + ": " + text
	}
	f.add(who, -1, text)
}

// function adds the function of a probe to what is shown. With instructions, each of them is a state when it is executed.
func (f *Film) function(at x86.Addr, instructions bool) {
	sym, ok := f.lab.Image.SymbolAt(at)
	if !ok || sym.Size == 0 || len(f.code) >= filmFunctions {
		return
	}
	for _, c := range f.code {
		if c.At == sym.Addr {
			return
		}
	}
	original := make([]byte, min(sym.Size, bounded.FilmCodeSize))
	original = original[:f.lab.Image.CodeAt(sym.Addr, original)]
	if !at.In(sym.Addr, sym.Addr.Add(int64(len(original)))) {
		return
	}
	f.code = append(f.code, film.Code{Name: sym.Name, Kind: "function", At: sym.Addr, Original: original})
	f.name(sym.Addr)
	for step := range kimage.NewWalker(f.lab.Image, &f.lab.Image.Profile().Decoder).Function(sym) {
		if step.Err != nil || step.Addr.Sub(sym.Addr) >= int64(len(original)) {
			break
		}
		if inst, err := decoder.Decode(original[step.Addr.Sub(sym.Addr):]); err == nil {
			if to, ok := inst.Target(step.Addr); ok {
				f.name(to)
			}
		}
		if !instructions {
			continue
		}
		if f.instructions[step.Addr] = true; f.lab.Machine.TextIsShared() {
			f.lab.Machine.ShowExecuted(step.Addr) // if there are too many, the rest is counted
			continue
		}
		w := &watch.Watchpoint{Addr: step.Addr, Len: 1, Kinds: machine.WatchExec, CPU: watch.Any, Task: watch.Any, Handler: func(_ *watch.Watchpoint, _ *watch.Hit, regs *x86.PtRegs) { f.executed(regs) }}
		if err := f.lab.Watches.Add(w); err != nil {
			f.err = errors.Join(f.err, err)
			return
		}
	}
}

// executed is called before an instruction of a probed function is executed, and perhaps before others.
func (f *Film) executed(regs *x86.PtRegs) {
	if !f.instructions[x86.Addr(regs.IP)] {
		return
	}
	at := session.New(f.lab).Here()
	f.seen(at.CPU, at.Task, regs, false)
	f.add(fmt.Sprintf("CPU %d", at.CPU), at.CPU, "")
}

// seen takes a processor's registers; frame: a handler gets them.
func (f *Film) seen(cpu, task int, regs *x86.PtRegs, frame bool) {
	c := &f.now.CPUs[cpu]
	c.Task = fmt.Sprintf("task %d", task)
	if f.names.Task != nil {
		pid, comm := f.names.Task(task)
		c.Task = fmt.Sprintf("%s (%d)", comm, pid)
	}
	if regs == nil {
		return
	}
	c.Known, c.Frame, c.Regs = true, frame, *regs
	c.Stack = nil
	var b [8 * filmStack]byte
	for n := len(b); n > 0; n -= 8 {
		if f.lab.Machine.ReadMem(x86.Addr(regs.SP), b[:n]) == nil {
			for i := 0; i < n; i += 8 {
				c.Stack = append(c.Stack, binary.LittleEndian.Uint64(b[i:]))
			}
			break
		}
	}
	for _, v := range append([]uint64{regs.IP}, c.Stack...) {
		f.name(x86.Addr(v))
	}
}

// add writes the state that is now.
func (f *Film) add(who string, cpu int, text string) {
	m := f.lab.Machine
	f.now.Who, f.now.CPU, f.now.Text, f.now.Now = who, cpu, text, m.Now()
	f.now.Ran, f.ran = m.Instructions()-f.ran, m.Instructions()
	f.now.Code = f.now.Code[:0]
	for _, c := range f.code {
		c.Bytes = f.read(c.At, len(c.Original))
		if len(c.Bytes) == len(c.Original) {
			f.now.Code = append(f.now.Code, c)
		}
	}
	f.now.Probes = f.now.Probes[:0]
	for _, p := range f.probes {
		f.probe(p)
		f.now.Probes = append(f.now.Probes, p.Probe)
	}
	f.w.Add(&f.now)
	f.now.Log = f.now.Log[:0]
}

func (f *Film) read(at x86.Addr, n int) []byte {
	b := make([]byte, n)
	if f.lab.Machine.ReadMem(at, b) != nil {
		return nil
	}
	return b
}

// probe brings a probe's state up to date, and adds its slot and its detour buffer to the code.
func (f *Film) probe(p *filmed) {
	entry := f.lab.Kprobes.Find(p.addr)
	if p.State = "not registered"; entry == nil || p.gone {
		return
	}
	p.Missed = entry.Nmissed
	d, ok := f.lab.Kprobes.Detour(p.addr)
	jump := ok && bytes.Equal(d.Jump[:], f.read(p.addr, len(d.Jump)))
	if inst, err := decoder.Decode(f.read(p.addr, x86.Rel32Size)); err == nil {
		if to, ok := inst.Target(p.addr); ok {
			f.name(to)
		}
	}
	p.State = steptext.Standing(entry, jump, f.lab.Kprobes.Queue(p.addr))
	if s, ok := entry.Slot(); ok {
		f.piece("slot of "+p.Text, "slot", s.Addr, s.Len)
	}
	if ok {
		f.piece("detour buffer of "+p.Text, "detour", d.Addr, len(d.Code()))
	}
}

func (f *Film) piece(name, kind string, at x86.Addr, n int) {
	for _, c := range f.now.Code {
		if c.At == at {
			return
		}
	}
	if b := f.read(at, n); b != nil && len(f.now.Code) < bounded.FilmCode {
		f.now.Code = append(f.now.Code, film.Code{Name: name, Kind: kind, At: at, Bytes: b})
		f.name(at)
	}
}

// place is SYM+0xOFF.
func (f *Film) place(at x86.Addr) string {
	f.name(at)
	name, _, _ := strings.Cut(f.names.Place(at), "/")
	return strings.TrimSuffix(name, "+0x0")
}

// name adds the symbol of an address of code to the film.
func (f *Film) name(at x86.Addr) {
	if at < 0xffffffff80000000 {
		return // the direct map, a stack, a number
	}
	text := f.names.Place(at) // SYM+0xOFF/0xSIZE
	place, sizeText, ok := cutLast(text, "/0x")
	name, offText, whole := cutLast(place, "+0x")
	off, err := strconv.ParseUint(offText, 16, 64)
	sizeText, _, _ = strings.Cut(sizeText, " ") // a module's name follows
	size, sizeErr := strconv.ParseUint(sizeText, 16, 64)
	if !ok || !whole || err != nil || sizeErr != nil {
		return
	}
	start := at.Add(-int64(off))
	if !f.named[start] {
		f.named[start] = true
		f.w.Name(film.Symbol{At: film.Word(start), Size: size, Name: name})
	}
}

// cutLast cuts a text at the last sep.
func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
