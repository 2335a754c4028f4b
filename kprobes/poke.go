package kprobes

import (
	"kprobelab/kprobes/textpoke"
	"kprobelab/x86"
)

// The steps of every change of text are in textpoke's protocols. Other CPUs may
// run between them.

// pokeEvents are the events of the steps that are one.
var pokeEvents = map[textpoke.Step]OptKind{
	textpoke.Int3:     OptPokeInt3,
	textpoke.Tail:     OptPokeTail,
	textpoke.First:    OptPokeFirst,
	textpoke.Sync:     OptPokeSync,
	textpoke.Withdraw: OptPokeDone,
	textpoke.Whole:    OptPokeStopped,
}

// startPatch begins to write the jump (arch_optimize_kprobes). The bytes that
// it hides are saved as they are in memory.
func (k *Kprobes) startPatch(o *optimized) {
	if err := k.m.ReadMem(o.entry.Addr+1, o.saved[:]); err != nil {
		k.fail(err)
	}
	steps := textpoke.Optimize
	if k.c.Optimize.StopMachine {
		steps = textpoke.Stopped
	}
	run, err := k.opt.text.StartSingle(steps, o.change(o.d.Jump[:]), k.textArray())
	if err != nil {
		k.fail(err)
	}
	k.opt.poke = run
	k.setPatched(o, true)
}

// startUnpatch begins to write the int3 and the saved bytes
// (arch_unoptimize_kprobe).
func (k *Kprobes) startUnpatch(o *optimized) {
	steps := textpoke.Undo
	switch {
	case k.c.Optimize.StopMachine:
		steps = textpoke.Stopped
	case k.c.Optimize.ThreeStepUnoptimize:
		steps = textpoke.UndoAnnounced
	}
	if k.shared != nil {
		if err := k.shared.GuestText(o.entry.Addr+1, o.saved[:]); err != nil {
			k.fail(err)
		}
	}
	k.opt.poke = k.opt.text.Start(steps, o.change(append([]byte{int3}, o.saved[:]...)))
}

// change leads to the detour buffer while it is announced.
func (o *optimized) change(b []byte) textpoke.Change {
	return textpoke.Change{At: o.entry.Addr, New: b, Landing: o.d.Addr}
}

func (k *Kprobes) textArray() textpoke.Array {
	return textpoke.Array{Shared: k.c.Poke.SharedArray, Appended: k.c.Poke.SingleAppends}
}

// Text changes the machine's text for other parts of a kernel: jump labels,
// static calls, the function tracer.
func (k *Kprobes) Text() *textpoke.Poker { return &k.opt.text }

// PokeSingle makes one change for such a part (text_poke_bp).
func (k *Kprobes) PokeSingle(c textpoke.Change) error {
	run, err := k.opt.text.StartSingle(textpoke.Batch, c, k.textArray())
	if failed := run.All(); failed != nil {
		return failed
	}
	return err
}

// pokeStep takes the next step that is an event; false where none was left.
func (k *Kprobes) pokeStep() bool {
	r := k.opt.poke
	if r.Done() {
		return false
	}
	for !r.Done() {
		s, err := r.Step()
		if err != nil {
			k.fail(err)
		}
		if kind, ok := pokeEvents[s]; ok {
			k.optEvent(kind, k.table.lookup(r.At()), r.At())
			break
		}
	}
	return true
}

// pokeByte writes an int3, or takes it out. A machine that cannot write text in
// steps does it at once.
func (k *Kprobes) pokeByte(steps textpoke.Protocol, at x86.Addr, b byte) error {
	c := textpoke.Change{At: at, New: []byte{b}}
	if k.opt.text.Ready() {
		return k.opt.text.Start(steps, c).All()
	}
	return k.m.PokeText(c.At, c.New)
}

// pokeSite changes a fentry site into a call of the tracer, or back. Where other CPUs may
// run meanwhile it takes the steps of a batch.
func (k *Kprobes) pokeSite(c textpoke.Change) error {
	if k.stepper != nil {
		return k.opt.text.Start(textpoke.Batch, c).All()
	}
	return k.m.PokeText(c.At, c.New)
}

// pokeInt3 is poke_int3_handler: a CPU that executes the int3 of a change continues as if the
// change were complete. No probe is hit.
func (k *Kprobes) pokeInt3(cpu *cpuState, regs *x86.PtRegs) bool {
	if !k.opt.text.Busy() {
		return false
	}
	at := x86.Addr(regs.IP - 1)
	c := k.opt.text.Met(at)
	if c == nil {
		return false
	}
	cpu.step = 0
	if c.Calls {
		regs.SP -= 8
		if err := k.writeWord(cpu, x86.Addr(regs.SP), uint64(at)+uint64(len(c.New))); err != nil {
			k.fail(err)
		}
	}
	regs.IP = uint64(c.Landing)
	k.event(cpu, EventPoke, WayInt3, k.table.lookup(at), c.Landing, regs)
	return true
}
