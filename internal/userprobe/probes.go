package userprobe

import (
	"encoding/binary"
	"fmt"
	"slices"

	"kprobelab/errno"
	"kprobelab/internal/process"
	"kprobelab/profile"
	"kprobelab/uprobes"
	"kprobelab/x86"
)

// Consumer is a set of handlers of a probe (uprobe_consumer).
type Consumer struct {
	// Hit is called at the instruction, with regs.IP at it; may be nil.
	Hit func(regs *x86.PtRegs)
	// Returned is called when the function that begins at the instruction has returned, with
	// regs.IP at the return address; may be nil.
	Returned func(function x86.Addr, regs *x86.PtRegs)

	// Filter reports whether the consumer accepts a process's memory; nil accepts all. An int3 is
	// written only where some consumer accepts. A process that inherits it by fork loses it at its
	// first hit.
	Filter func(s *process.Space) bool

	// Hits, Returns and Missed are its counts; Missed are calls too deep for a return probe.
	Hits, Returns, Missed uint64
}

// uprobe is a place in a file, with its consumers.
type uprobe struct {
	file   *process.File
	offset uint64
	// counter is the file offset of a reference counter, 0 for none.
	counter   uint64
	consumers []*Consumer // the last that came first, as the kernel has them
	analysis  uprobes.Analysis
	// stays: it could not be made a call, and is not tried again.
	stays bool
}

// space is the state of probes in an address space (struct uprobes_state).
type space struct {
	area  x86.Addr // the XOL area, 0 for none
	slots slots
	// at are the addresses with each probe's int3; counted are the probes whose counter was
	// incremented.
	at      map[*uprobe]map[x86.Addr]bool
	counted map[*uprobe]bool
	// calls are the addresses that have a call by now, trampolines the addresses that they call.
	calls       map[x86.Addr]bool
	trampolines []x86.Addr
}

// step is the instruction that is being executed out of line.
type step struct {
	u       *uprobe
	in      *space
	at, xol x86.Addr
	slot    int
	flags   uint64 // the trap flag as it was
	scratch uint64
}

// Stats counts the events of hits.
type Stats struct {
	// Hits counts the int3 of probes that were met; Emulated and Stepped count their outcomes.
	Hits, Emulated, Stepped uint64
	// Returns counts the returns to the trampoline; Unwound counts the probed calls that longjmp
	// had left.
	Returns, Unwound uint64
	// Optimized counts the nops that became calls, Calls the hits that came by such calls.
	Optimized, Calls uint64
}

// Probes are the uprobes of a program and its processes. They are a process.Tracer.
type Probes struct {
	c     *profile.Config
	p     *process.Process
	list  map[place]*uprobe
	order []*uprobe
	tasks map[int]*task
	// spaces are the spaces of the existing processes.
	spaces map[*process.Space]*space
	word   [8]byte // to be pushed
	// OnLog gets the messages that the kernel would log.
	OnLog func(line string)
	// OnEvent is called at each step of a hit; may be nil.
	OnEvent func(e *Event)
	Stats   Stats
}

type place struct {
	file   *process.File
	offset uint64
}

// New makes probes for a process of a kernel. It is the process's Tracer.
func New(c *profile.Config) *Probes {
	return &Probes{c: c, list: map[place]*uprobe{}, tasks: map[int]*task{}, spaces: map[*process.Space]*space{}, OnLog: func(string) {}}
}

// Start implements process.Tracer.
func (k *Probes) Start(p *process.Process) { k.p = p }

// Check returns the error that registering would return for a place of a file that a process has
// mapped, and the analysis of the instruction there.
func Check(c *profile.Config, f *process.File, offset, counter uint64) (uprobes.Analysis, error) {
	a, err := check(c, f, offset, counter)
	if err == nil && a.Errno != 0 {
		err = a.Errno
	}
	if err == nil && inside(f, offset) {
		a.Hazard = uprobes.InsideInstruction
	}
	return a, err
}

// inside reports an offset at which no instruction of its function begins, as far as that is known.
func inside(f *process.File, offset uint64) bool {
	code, at, ok := f.Function(offset)
	if !ok {
		return false
	}
	_, _, inside := uprobes.Inside(code, int(offset-at))
	return inside
}

func check(c *profile.Config, f *process.File, offset, counter uint64) (a uprobes.Analysis, err error) {
	size := uint64(len(f.Data))
	switch {
	case !c.Uprobes.Exists:
		return a, errno.ENOSYS
	case offset > size:
		return a, fmt.Errorf("the file has %#x bytes: %w", size, errno.EINVAL)
	case counter%2 != 0:
		return a, fmt.Errorf("a reference counter is at an even offset: %w", errno.EINVAL)
	case offset == size:
		return a, fmt.Errorf("the file ends there: %w", errno.EIO)
	}
	// The address decides only whether a page ends in the instruction; files are mapped
	// by pages.
	return uprobes.Analyze(f.Data[offset:min(size, offset+uprobes.InsnSize)], x86.Addr(offset%process.PageSize), c), nil
}

// Register adds a consumer at an offset of a file. counter is the offset of a reference counter,
// 0 for none. Where the file is mapped already, the instruction may be refused.
func (k *Probes) Register(f *process.File, offset, counter uint64, c *Consumer) error {
	a, err := check(k.c, f, offset, counter)
	if err != nil {
		return err
	}
	at := place{f, offset}
	u := k.list[at]
	if u == nil {
		u = &uprobe{file: f, offset: offset, counter: counter, analysis: a}
	}
	if u.counter != counter {
		return errno.EINVAL // ref_ctr_offset mismatch
	}
	if a.Errno != 0 && k.each(func(_ *process.Space, v *process.Mapping) bool { return u.in(v) }) {
		return a.Errno
	}
	if k.list[at] == nil {
		k.list[at], k.order = u, append(k.order, u)
	}
	u.consumers = slices.Insert(u.consumers, 0, c)
	k.each(func(s *process.Space, v *process.Mapping) bool {
		k.plant(u, s, v)
		return false
	})
	return nil
}

// each does something with the mappings of all processes, until it says that this was enough.
func (k *Probes) each(do func(s *process.Space, v *process.Mapping) bool) bool {
	if k.p == nil {
		return false
	}
	for _, s := range k.p.Spaces() {
		for _, v := range s.Maps() {
			if do(s, &v) {
				return true
			}
		}
	}
	return false
}

// Unregister takes a consumer away; the int3 goes from where no other one wants it.
func (k *Probes) Unregister(f *process.File, offset uint64, c *Consumer) {
	u := k.list[place{f, offset}]
	if u == nil {
		return
	}
	u.consumers = slices.DeleteFunc(u.consumers, func(o *Consumer) bool { return o == c })
	if len(u.consumers) == 0 {
		delete(k.list, place{f, offset})
		k.order = slices.DeleteFunc(k.order, func(o *uprobe) bool { return o == u })
	}
	if k.p == nil {
		return
	}
	for _, s := range k.p.Spaces() {
		if !u.wanted(s) {
			k.remove(u, s)
		}
	}
}

// wanted reports whether a consumer wants hits of a space (filter_chain).
func (u *uprobe) wanted(s *process.Space) bool {
	return slices.ContainsFunc(u.consumers, func(c *Consumer) bool { return c.wants(s) })
}

func (c *Consumer) wants(s *process.Space) bool { return c.Filter == nil || c.Filter(s) }

// OfProcess is a filter: the memory of one process.
func (k *Probes) OfProcess(pid int) func(s *process.Space) bool {
	return func(s *process.Space) bool { return slices.Contains(k.p.PIDs(s), pid) }
}

// remove takes the probe out of a space. The first byte is then the copy's first byte, which lacks
// REX.B if the operand is relative to rip (unapply_uprobe, set_orig_insn).
func (k *Probes) remove(u *uprobe, s *process.Space) {
	own := k.of(s)
	for at := range own.at[u] {
		n := 1
		if own.calls[at] {
			n = callSize // of a nop of ten bytes, the call stays: its bytes are the displacement
		}
		delete(own.calls, at)
		_ = s.Poke(at, u.analysis.Copy[:n]) // it may be unmapped
	}
	delete(own.at, u)
	k.count(u, s, -1)
}

// of returns the state of probes in a space.
func (k *Probes) of(s *process.Space) *space {
	own := k.spaces[s]
	if own == nil {
		own = &space{at: map[*uprobe]map[x86.Addr]bool{}, counted: map[*uprobe]bool{}, calls: map[x86.Addr]bool{}}
		k.spaces[s] = own
	}
	return own
}

// in reports whether a mapping shows the place, so that an int3 is put there: of a file, and not
// for writing (valid_vma).
func (u *uprobe) in(v *process.Mapping) bool {
	return v.File == u.file && v.Prot&process.ProtWrite == 0 && v.Offset <= u.offset && u.offset-v.Offset < v.Len()
}

// Mapped implements process.Tracer: it plants the probes of a mapping.
func (k *Probes) Mapped(v *process.Mapping) {
	s := k.p.Space
	for _, u := range k.order {
		k.plant(u, s, v)
		if len(k.of(s).at[u]) > 0 {
			k.count(u, s, 1) // the counter may have been mapped just now
		}
	}
}

const int3 = 0xcc

func (k *Probes) plant(u *uprobe, s *process.Space, v *process.Mapping) {
	if !u.in(v) || u.analysis.Errno != 0 || !u.wanted(s) {
		return
	}
	at := v.Start + x86.Addr(u.offset-v.Offset)
	if s.Poke(at, []byte{int3}) != nil {
		return
	}
	own := k.of(s)
	if own.at[u] == nil {
		own.at[u] = map[x86.Addr]bool{}
	}
	own.at[u][at] = true
	k.count(u, s, 1)
}

// count adds to the probe's reference counter, once, wherever it is mapped for writing.
func (k *Probes) count(u *uprobe, s *process.Space, n int16) {
	own := k.of(s)
	if u.counter == 0 || own.counted[u] == (n > 0) {
		return
	}
	for _, v := range s.Maps() {
		if v.File != u.file || v.Prot&process.ProtWrite == 0 || u.counter < v.Offset || u.counter-v.Offset >= v.Len() {
			continue
		}
		at := v.Start + x86.Addr(u.counter-v.Offset)
		var b [2]byte
		if s.Read(at, b[:]) != nil {
			continue
		}
		binary.LittleEndian.PutUint16(b[:], uint16(int16(binary.LittleEndian.Uint16(b[:]))+n))
		if s.Write(at, b[:]) == nil {
			own.counted[u] = n > 0
		}
	}
}

// find returns the probe at an address, nil if there is none.
func (k *Probes) find(at x86.Addr) *uprobe {
	v := k.p.At(at)
	if v == nil || v.File == nil {
		return nil
	}
	if u := k.list[place{v.File, v.FileOffset(at)}]; u != nil && u.in(v) {
		return u
	}
	return nil
}

// Code reads a program's code as it is without probes; it says how much can be read.
func (k *Probes) Code(at x86.Addr, b []byte) int {
	if k.p.Read(at, b) != nil {
		if b = b[:min(len(b), process.PageSize-int(at%process.PageSize))]; k.p.Read(at, b) != nil {
			return 0
		}
	}
	own := k.of(k.p.Space)
	for i := range b {
		a := at + x86.Addr(i)
		if b[i] != int3 && !own.calls[a] {
			continue
		}
		if u := k.find(a); u != nil && own.at[u][a] {
			n := 1
			if how := k.optimization(); own.calls[a] {
				n = len(how.lead) + callSize
			}
			copy(b[i:min(len(b), i+n)], u.file.Data[u.offset:])
		}
	}
	return len(b)
}

// HazardAt returns the hazard of a probe that the kernel accepts at a place of a file, "" for none.
func HazardAt(c *profile.Config, f *process.File, offset uint64) uprobes.Hazard {
	a, err := check(c, f, offset, 0)
	if err != nil {
		return ""
	}
	return a.Hazard
}
