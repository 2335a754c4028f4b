package kprobes

import (
	"slices"

	"kprobelab/x86"
)

// poke is a change of text that is under way (text_poke_bp). Other CPUs may run
// between its steps. What they may meet at A, and why it is safe:
//
//	optimizing: the int3 is there already, and no task is inside A+1 to A+4,
//	because the worker waited until every task had scheduled.
//	1 announce; cc at A; synchronize   whoever comes to A traps, and goes on
//	                                   at the jump's target
//	2 the tail; synchronize            after the cc: nobody fetches it
//	3 e9 at A; synchronize             every CPU has seen the tail by now
//	4 withdraw the announcement
//
//	unoptimizing: e9 rel32 stands there.
//	1 cc at A; synchronize             whoever comes to A traps, and kprobes
//	                                   go through the detour (OPTIMIZED is set)
//	2 the tail; synchronize            after the cc: nobody fetches it
//
// 4.4 undoes with the announcement too. Step 3 falls away where the new first
// byte is the int3 itself. With stop_machine (to 3.11) no CPU runs meanwhile.
type poke struct {
	at  x86.Addr
	new [jumpSize]byte
	// landing is where a CPU goes on after the int3 at at; 0 while nothing is
	// announced.
	landing x86.Addr
	steps   []pokeStep
}

// pokeStep is one step: a write of n bytes from off on, a synchronization of
// all CPUs, or the announcement's end.
type pokeStep struct {
	kind   OptKind
	off, n int
}

var (
	pokeInt3  = pokeStep{OptPokeInt3, 0, 0}
	pokeTail  = pokeStep{OptPokeTail, 1, jumpTail}
	pokeFirst = pokeStep{OptPokeFirst, 0, 1}
	pokeSync  = pokeStep{OptPokeSync, 0, 0}
	pokeDone  = pokeStep{OptPokeDone, 0, 0}
	pokeWhole = pokeStep{OptPokeStopped, 0, jumpSize}
)

// The protocols.
var (
	threeSteps    = []pokeStep{pokeInt3, pokeSync, pokeTail, pokeSync, pokeFirst, pokeSync, pokeDone}
	threeStepsCC  = []pokeStep{pokeInt3, pokeSync, pokeTail, pokeSync, pokeDone}
	backToInt3    = []pokeStep{pokeInt3, pokeSync, pokeTail, pokeSync}
	underStopping = []pokeStep{pokeWhole}
)

// startPatch begins to write the jump (arch_optimize_kprobes). The bytes that
// it hides are saved as they are in memory.
func (k *Kprobes) startPatch(o *optimized) {
	if err := k.m.ReadMem(o.entry.Addr+1, o.saved[:]); err != nil {
		k.fail(err)
	}
	k.opt.poke = poke{at: o.entry.Addr, new: o.d.Jump}
	switch {
	case k.c.Optimize.StopMachine:
		k.opt.poke.steps = underStopping
	default:
		k.opt.poke.steps, k.opt.poke.landing = threeSteps, o.d.Addr
	}
	k.setPatched(o, true)
}

// startUnpatch begins to write the int3 and the saved bytes
// (arch_unoptimize_kprobe).
func (k *Kprobes) startUnpatch(o *optimized) {
	p := poke{at: o.entry.Addr, new: [jumpSize]byte{int3}, steps: backToInt3}
	copy(p.new[1:], o.saved[:])
	switch {
	case k.c.Optimize.StopMachine:
		p.steps = underStopping
	case k.c.Optimize.ThreeStepUnoptimize:
		p.steps, p.landing = threeStepsCC, o.d.Addr
	}
	k.opt.poke = p
}

// pokeStep takes the next step; false where none was left.
func (k *Kprobes) pokeStep() bool {
	p := &k.opt.poke
	if len(p.steps) == 0 {
		return false
	}
	s := p.steps[0]
	p.steps = p.steps[1:]
	var err error
	switch {
	case s.kind == OptPokeInt3:
		err = k.opt.patcher.PokeTextNoSync(p.at, []byte{int3})
	case s.n > 0:
		err = k.opt.patcher.PokeTextNoSync(p.at.Add(int64(s.off)), slices.Clone(p.new[s.off:s.off+s.n]))
	}
	if s.kind == OptPokeSync || s.kind == OptPokeStopped {
		k.syncAll()
	}
	if len(p.steps) == 0 {
		p.landing = 0
	}
	if err != nil {
		k.fail(err)
	}
	k.optEvent(s.kind, k.table.lookup(p.at), p.at)
	return true
}

// syncAll is text_poke_sync.
func (k *Kprobes) syncAll() {
	for cpu := range k.m.NumCPU() {
		k.opt.patcher.SyncCore(cpu)
	}
}

// pokeInt3 is poke_int3_handler: a CPU that meets the int3 of a change goes on
// as if the jump were there already. Kprobes are not asked.
func (k *Kprobes) pokeInt3(cpu *cpuState, regs *x86.PtRegs) bool {
	p := &k.opt.poke
	if p.landing == 0 || x86.Addr(regs.IP-1) != p.at {
		return false
	}
	cpu.step = 0
	regs.IP = uint64(p.landing)
	k.event(cpu, EventPoke, WayInt3, k.table.lookup(p.at), p.landing, regs)
	return true
}
