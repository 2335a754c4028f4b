package interp

import (
	"maps"
	"math/rand/v2"
	"unsafe"

	"kprobelab/machine"
	"kprobelab/x86"
)

// log is the changes of memory and of the blocks, in order. A mark knows how many
// there were before it.
type log struct {
	changes []change
	trimmed int // how many came before them
	bytes   int
}

// change is one to undo.
type change struct {
	old   []byte // what memory held at
	at    x86.Addr
	block *block // was added to, or dropped from, cpu's
	cpu   *cpu
	added bool
}

// mark is the engine at a moment, without its memory.
type mark struct {
	changes int
	entropy []byte
	cpus    []cpuMark
	console console
}

type cpuMark struct {
	state            *state
	fs, gs, kernelGS uint64
	sys              system
	single           bool
}

func (e *engine) Log(on bool) {
	e.log = nil
	if on {
		e.log = &log{}
	}
	e.logBlocks(e.log)
	e.flushTLB()
}

func (e *engine) logBlocks(l *log) {
	for _, c := range e.cpus {
		c.blocks.log = l
	}
}

// Mark keeps registers that are those of the mark before once.
func (e *engine) Mark(before any) any {
	k := &mark{changes: e.log.trimmed + len(e.log.changes), console: e.console.clone()}
	k.entropy, _ = e.entropy.MarshalBinary() // it cannot fail
	earlier, _ := before.(*mark)
	for n, c := range e.cpus {
		cm := cpuMark{fs: c.fs, gs: c.gs, kernelGS: c.kernelGS, sys: c.sys, single: c.single}
		cm.sys.msr = maps.Clone(c.sys.msr)
		var last machine.State
		if earlier != nil {
			last = earlier.cpus[n].state
		}
		cm.state = e.KeepState(&c.state, last).(*state)
		k.cpus = append(k.cpus, cm)
	}
	return k
}

func (e *engine) KeepState(s, before machine.State) machine.State {
	now := s.(*state)
	if old, ok := before.(*state); ok && *old == *now {
		return old
	}
	kept := *now
	return &kept
}

func (e *engine) SetState(s, kept machine.State) { *s.(*state) = *kept.(*state) }

func (e *engine) Undo(to any) {
	k, l := to.(*mark), e.log
	e.logBlocks(nil)
	defer e.logBlocks(l)
	for n := len(l.changes) - 1; n >= k.changes-l.trimmed; n-- {
		l.changes[n].undo(e)
		l.bytes -= l.changes[n].size()
	}
	clear(l.changes[k.changes-l.trimmed:])
	l.changes = l.changes[:k.changes-l.trimmed]
	e.entropy = &rand.PCG{}
	_ = e.entropy.UnmarshalBinary(k.entropy) // it made these bytes
	e.console = k.console
	for n, c := range e.cpus {
		s := &k.cpus[n]
		c.state, c.fs, c.gs, c.kernelGS, c.sys, c.single = *s.state, s.fs, s.gs, s.kernelGS, s.sys, s.single
	}
}

// size is what a change takes, with the dropped block that it alone keeps.
func (c *change) size() int {
	n := len(c.old) + changeSize
	if c.block != nil && !c.added {
		n += len(c.block.ops) * int(unsafe.Sizeof(op{}))
	}
	return n
}

func (c *change) undo(e *engine) {
	switch {
	case c.block == nil:
		e.copyIn(c.at, c.old)
	case c.added:
		c.cpu.blocks.forget(c.block)
	default:
		c.cpu.blocks.revive(c.block)
	}
}

func (e *engine) Trim(to any) {
	l := e.log
	n := to.(*mark).changes - l.trimmed
	for _, c := range l.changes[:n] {
		l.bytes -= c.size()
	}
	l.changes = append([]change(nil), l.changes[n:]...)
	l.trimmed += n
}

// memory is told before memory is written.
func (l *log) memory(e *engine, addr x86.Addr, n int) {
	old := make([]byte, n)
	e.copyOut(addr, old)
	l.add(e, change{old: old, at: addr})
}

// add makes the log void where it becomes too long.
func (l *log) add(e *engine, c change) {
	l.changes = append(l.changes, c)
	if l.bytes += c.size(); l.bytes > machine.MaxLog {
		e.host.ForgetSteps()
	}
}

// changeSize is what a change takes beside its bytes and its block.
const changeSize = 96

// block is told after a block was added or dropped.
func (l *log) block(c *cpu, b *block, added bool) {
	l.add(c.e, change{block: b, cpu: c, added: added})
}
