package guestfast

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// Machine is what the fast path needs of a machine beside kprobes.GuestRunner.
type Machine interface {
	kprobes.Machine
	kprobes.GuestRunner
	// SteadyBlocks reports whether guest code that does not branch runs without
	// another CPU or task in between.
	SteadyBlocks() bool
	// GateInt3 leads the int3 at an address to guest code, which finds interrupts
	// off, the word in word 0 of the CPU's page, and on the stack a pt_regs from
	// orig_ax on, with 64 free bytes above. A gate is not taken while word 0 is not
	// 0. It is false where there is no room for the gate.
	GateInt3(at, entry, word x86.Addr) bool
	// UngateInt3 takes the gate at an address away.
	UngateInt3(at x86.Addr)
	// OnRestore has fn called whenever memory was put back to what it once was,
	// and all gates were taken away.
	OnRestore(fn func())
}

// The words of a CPU's page. The machine does not preempt the CPU's task while
// running is above busy, and keeps task up to date.
const (
	wordRunning = iota
	wordTask
	wordArg
)

// busy in the running word: Go handles a trap or a call-out of this CPU.
const busy = 1

// path is the fast path of one machine.
type path struct {
	in kprobes.Inside
	m  Machine
	// local are the CPUs' pages, held what their running words were above busy
	// when Go began to handle something, 0 for nothing.
	local [][]uint64
	held  []x86.Addr
	code  *code
	// probes find the probe of a record, or the entry of a chain's.
	probes map[x86.Addr]*kprobes.Kprobe
	routes routes
	calls  calls
	word   [8]byte
	// err is the first error of starting.
	err error
}

// New makes the fast path, nil where it is of no use: where the machine lacks
// something, tears blocks apart, or the kernel leaves current_kprobe to handlers
// (before 4.19).
func New(in kprobes.Inside) (kprobes.FastPath, error) {
	m, ok := in.Machine().(Machine)
	if !ok || in.Config().Step.HandlerResets || !m.SteadyBlocks() {
		return nil, nil
	}
	offset := m.LocalOffset()
	if int64(offset) != int64(int32(offset)) {
		return nil, nil
	}
	c, err := openCode()
	if err != nil {
		return nil, err
	}
	p := &path{in: in, m: m, code: c, probes: map[x86.Addr]*kprobes.Kprobe{}, held: make([]x86.Addr, m.NumCPU())}
	for cpu := range m.NumCPU() {
		p.local = append(p.local, m.Local(cpu))
	}
	for word, name := range []string{wordRunning: "running", wordTask: "task", wordArg: "arg"} {
		c.values[name] = offset + x86.Addr(8*word)
	}
	if p.start(); p.err != nil {
		return nil, fmt.Errorf("fast path: %w", p.err)
	}
	m.OnRestore(p.restored)
	return p, nil
}

// Hit implements kprobes.FastPath.
func (p *path) Hit(way kprobes.Way, entry *kprobes.Kprobe, key uint64) {
	switch way {
	case kprobes.WayInt3:
		p.gate(entry)
	case kprobes.WayStep:
		p.gatePost(entry, x86.Addr(key))
	case kprobes.WayDetour:
		p.route(p.routes.detours, entry, key, key<<4, hitBy{ignores: true, noStep: true})
	case kprobes.WayTracer:
		p.route(p.routes.sites, entry, key, key, hitBy{noStep: true})
	}
}

// Change implements kprobes.FastPath.
func (p *path) Change() {
	p.forgetRoutes()
	p.takeAllBack()
	p.startDetours() // without room, those hits go through Go
}

// restored begins anew in memory that was put back: a route or a list that is
// there may be an old one.
func (p *path) restored() {
	p.forgetRoutes()
	for _, table := range []x86.Addr{p.routes.detours, p.routes.sites} {
		p.wipe(table)
	}
	if p.calls.heads != 0 {
		p.emptyHeads()
	}
	p.takeBack(slices.Sorted(maps.Keys(p.calls.lent)))
	clear(p.calls.pools)
}

// Enter implements kprobes.FastPath.
func (p *path) Enter(cpu, task int) kprobes.Held {
	w := p.local[cpu]
	h := kprobes.Held{Word: w[wordRunning]}
	if at := p.running(cpu); at != 0 {
		h.Probe, h.Task, p.held[cpu] = p.probeOf(at), int(w[wordTask]), at
	}
	w[wordRunning] = busy
	if len(p.calls.lent) > 0 {
		p.takePending(task)
	}
	return h
}

// Leave implements kprobes.FastPath.
func (p *path) Leave(cpu int, h kprobes.Held) {
	if h.Word != busy {
		p.held[cpu] = 0
	}
	p.local[cpu][wordRunning] = h.Word
}

// running is what guest code of a CPU runs a handler of, by its running word: a
// record, or an instance whose return handler it is; 0 for none.
func (p *path) running(cpu int) x86.Addr {
	if w := p.local[cpu][wordRunning]; w > busy {
		return x86.Addr(w)
	}
	return p.held[cpu]
}

// probeOf is what kprobes calls current while the handler of a record or an
// instance runs.
func (p *path) probeOf(at x86.Addr) *kprobes.Kprobe {
	if l, ok := p.calls.lent[at]; ok {
		return l.probe
	}
	probe := p.probes[at]
	if probe != nil {
		if entry := p.in.Entry(probe); entry != nil {
			return entry
		}
	}
	return probe
}

// runs reports whether guest code of any CPU runs a handler, of this record or
// instance where it is not 0.
func (p *path) runs(at x86.Addr) bool {
	for cpu := range p.local {
		if r := p.running(cpu); r != 0 && (at == 0 || r == at) {
			return true
		}
	}
	return false
}

// get and set are for words of records, instances and tables, which are memory
// of this package: they cannot fail.
func (p *path) get(at x86.Addr) uint64 {
	if err := p.m.ReadMem(at, p.word[:]); err != nil {
		p.in.Fail(err)
	}
	return binary.LittleEndian.Uint64(p.word[:])
}

func (p *path) set(at x86.Addr, v uint64) {
	binary.LittleEndian.PutUint64(p.word[:], v)
	if err := p.m.WriteMem(at, p.word[:]); err != nil {
		p.in.Fail(err)
	}
}
