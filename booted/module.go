package booted

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"kprobelab/errno"
	"kprobelab/hostfiles"
	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// Module is a kernel module that the booted kernel has loaded by finit_module(2), made by a process of its own.
type Module struct {
	// Name is the kernel's name of it.
	Name string
	// Probes are the kprobes and kretprobes that were registered while it was loaded.
	Probes []ModuleProbe

	k      *Kernel
	watch  *moduleWatch
	before map[x86.Addr]bool
	text   []byte
	slots  slotCounts
	// log begins when the module is loaded, endLog when it is unloaded.
	log, endLog since
	// ended: the kernel has unloaded it, or has not loaded it.
	ended bool
}

// ModuleProbe is a kprobe or a kretprobe that a module has registered.
type ModuleProbe struct {
	// Place is the probed instruction, as symbol+offset.
	Place string
	// Return: it is a kretprobe.
	Return bool
	// Counted: Hits and Returns are known. They are not if the probe has no handler, or the kernel does not describe its types.
	Counted bool
	// Hits counts the calls of its handler, of a kretprobe the calls at a function's entry. Returns counts the calls of a
	// kretprobe's handler at a return.
	Hits, Returns uint64
	// Missed is the kernel's count of hits that came while a handler ran (nmissed). Exhausted is its count of hits for which
	// a kretprobe had no instance left.
	Missed, Exhausted uint64
	// Errno is the kernel's refusal, 0 if it registered the probe.
	Errno errno.Errno

	at x86.Addr
}

// ModuleError is a module that the kernel did not load or unload. It unwraps to the errno.
type ModuleError struct {
	// Name is the module's. Unloading tells which of both it was.
	Name      string
	Unloading bool
	errno.Errno
	// Log holds the lines that the kernel logged while it tried.
	Log []string
}

// Error is one sentence.
func (e *ModuleError) Error() string {
	verb := "load"
	if e.Unloading {
		verb = "unload"
	}
	return fmt.Sprintf("the kernel does not %s the module %s: %v", verb, e.Name, e.Errno)
}

// Unwrap is the errno.
func (e *ModuleError) Unwrap() error { return e.Errno }

// Judgement says what a module did, and what it has left when it was unloaded.
type Judgement struct {
	// Probes are all that it registered or tried to.
	Probes []ModuleProbe
	// Faults are things that a module must not do.
	Faults []Fault
	// Left are the probes that are still registered: their next hit runs code that is gone.
	Left []ModuleProbe
	// Changed are places of the kernel's text that differ from before, as symbol+offset. The kernel's own static branches
	// do not count.
	Changed []string
	// Slots and OptimizedSlots are the instruction slots of kprobes and of optimized ones that were not given back.
	Slots, OptimizedSlots int
	// Memory lists the allocations of the module's own code that were not freed, in the order of the places.
	Memory []Allocation
	// After counts the calls of its handlers after its end. Ran is the oops of its code after its end, "" without one.
	After uint64
	Ran   string
	// Untold says what cannot be told of this kernel or in this run.
	Untold []string
	// Log holds the lines that the kernel logged since the module was loaded. Trouble is the part of Log that begins
	// with the first warning, bug or oops.
	Log, Trouble []string
}

// Clean reports whether the module did nothing that it must not do and has left nothing, and the kernel logged no trouble.
func (j *Judgement) Clean() bool {
	return len(j.Faults)+len(j.Left)+len(j.Changed)+len(j.Memory)+len(j.Trouble) == 0 && j.Slots <= 0 && j.OptimizedSlots <= 0 && j.After == 0
}

// moduleName is the kernel's name of a module's file.
func moduleName(file string) string {
	name := path.Base(file)
	if i := strings.Index(name, ".ko"); i > 0 {
		name = name[:i]
	}
	return strings.ReplaceAll(name, "-", "_")
}

// moduleFolder is the guest's folder that module files are written to.
const moduleFolder = "/lib/modules/kprobelab/"

// Load loads a module from the content of its .ko file, with its parameters. The error is a *ModuleError if the kernel
// refuses it, a *PanicError if the kernel panicked. With these errors the Module is there, too: Judge says what it left.
func (k *Kernel) Load(ctx context.Context, name string, code []byte, parameters string) (*Module, error) {
	m := &Module{Name: moduleName(name), k: k}
	if _, err := k.toInit(); err != nil {
		return nil, err
	}
	file := moduleFolder + m.Name + ".ko"
	if err := k.Put([]hostfiles.File{{Path: file, Mode: 0o644, Data: code}}); err != nil {
		return nil, err
	}
	m.log, m.text, m.slots = k.logged(), k.textNow(), k.slotCounts()
	m.watch = k.watchModule(m.Name)
	m.before = map[x86.Addr]bool{}
	for _, p := range k.probes() {
		m.before[p.at] = true
	}
	err := m.ask(ctx, false, "load", file, parameters)
	if refused := (*ModuleError)(nil); errors.As(err, &refused) {
		m.end()
	}
	m.Look()
	return m, err
}

// end: the kernel has unloaded the module.
func (m *Module) end() {
	m.ended, m.watch.ended, m.endLog = true, true, m.k.logged()
	m.k.settle()
}

// Look finds the probes that the module has registered by now, and their counts.
func (m *Module) Look() {
	if m.watch.layout.known {
		m.watch.count()
		m.Probes = nil
		for _, p := range m.watch.order {
			if !p.refused() {
				m.Probes = append(m.Probes, p.ModuleProbe)
			}
		}
		return
	}
	now := m.new()
	for _, p := range m.Probes {
		if !slices.ContainsFunc(now, func(n ModuleProbe) bool { return n.at == p.at }) {
			now = append(now, p) // unregistered meanwhile
		}
	}
	m.Probes = now
}

// new are the probes that were not there before the module.
func (m *Module) new() (list []ModuleProbe) {
	for _, p := range m.k.probes() {
		if !m.before[p.at] {
			list = append(list, p)
		}
	}
	return list
}

// ask runs the supervisor's program that makes the system call.
func (m *Module) ask(ctx context.Context, unloading bool, args ...string) error {
	log := m.k.logged()
	r, err := m.k.Run(ctx, &Session{Program: Program{Args: args}, supervisor: true})
	if err == nil && r.Code != 0 {
		err = &ModuleError{m.Name, unloading, errno.Errno(r.Code), log.lines()}
		if r.Signal != 0 {
			err = fmt.Errorf("the process that asked the kernel for the module %s was killed by signal %d: the kernel failed in it", m.Name, r.Signal)
		}
	}
	return err
}

// Places of the kernel's table of kprobes (kernel/kprobes.c).
const (
	probeTable = "kprobe_table"
	tableSize  = 64
)

// probes are the kprobes that the kernel has registered, read from its table: no code of the kernel runs for that.
func (k *Kernel) probes() []ModuleProbe {
	table := k.image.Lookup(probeTable)
	kprobe, ok := k.image.Types().Struct("kprobe")
	if len(table) != 1 || !ok {
		return nil
	}
	t := probes{pointer: k.pointer}
	for name, to := range map[string]*x86.Addr{"hlist": &t.hlist, "addr": &t.addr, "nmissed": &t.missed, "list": &t.siblings} {
		m, ok := kprobe.Member(name)
		if !ok {
			return nil
		}
		*to = x86.Addr(m.Offset / 8)
	}
	t.read(table[0].Addr)
	for i := range t.list {
		if to := k.pointer(t.list[i].at + t.addr); to != 0 {
			t.list[i].Place = k.machine.Symbolize(to)
		}
	}
	return t.list
}

// probes reads the table: offsets of struct kprobe, and what was found.
type probes struct {
	pointer                       func(x86.Addr) x86.Addr
	hlist, addr, missed, siblings x86.Addr
	list                          []ModuleProbe
}

// read walks the lists of the table. Damaged ones may have no end.
func (t *probes) read(table x86.Addr) {
	for n := range x86.Addr(tableSize) {
		for node := t.pointer(table + 8*n); node != 0 && t.room(); node = t.pointer(node) {
			at := node - t.hlist
			head := at + t.siblings
			next := t.pointer(head)
			if next == head || next == 0 {
				t.add(at)
				continue
			}
			// An aggregate: its own place, and a probe for each in its list.
			for ; next != head && next != 0 && t.room(); next = t.pointer(next) {
				t.add(next - t.siblings)
			}
		}
	}
}

func (t *probes) room() bool { return len(t.list) < bounded.GuestProbes }

func (t *probes) add(at x86.Addr) {
	t.list = append(t.list, ModuleProbe{at: at, Missed: uint64(t.pointer(at + t.missed))})
}

// textNow is the kernel's text as the guest has it, nil if it cannot be read.
func (k *Kernel) textNow() []byte {
	r, ok := k.text()
	if !ok {
		return nil
	}
	b := make([]byte, r.Len())
	if k.machine.GuestText(r.Start, b) != nil {
		return nil
	}
	return b
}

func (k *Kernel) text() (r x86.Range, ok bool) {
	start, end := k.image.Lookup("_stext"), k.image.Lookup("_etext")
	if len(start) != 1 || len(end) != 1 || end[0].Addr-start[0].Addr > bounded.GuestText {
		return r, false
	}
	return x86.Range{Start: start[0].Addr, End: end[0].Addr}, true
}

// changed are the places of text that differ from before, each instruction once.
func (m *Module) changed() (list []string) {
	now := m.k.textNow()
	r, _ := m.k.text()
	if now == nil || len(now) != len(m.text) {
		return nil
	}
	const page, near = 4096, 8
	for at := 0; at < len(now) && len(list) < bounded.ChangedPlaces; at += page {
		end := min(at+page, len(now))
		if bytes.Equal(now[at:end], m.text[at:end]) {
			continue
		}
		for i := at; i < end && len(list) < bounded.ChangedPlaces; i++ {
			if now[i] != m.text[i] && !m.ownBranch(r.Start.Add(int64(i))) {
				list = append(list, m.k.machine.Symbolize(r.Start.Add(int64(i))))
				i += near
			}
		}
	}
	return list
}
