package transparency

import (
	"slices"

	"kprobelab/decoder"
	"kprobelab/machine"
	"kprobelab/profile"
)

// difference is one way in which a real kernel's own stepping changes the program, or the report of
// an oops.
type difference struct {
	name string
	// why is the reason, in words.
	why string
	// field is the field of profile.Config that off clears.
	field string
	off   func(c *profile.Config)
	// on are the kernels where it is found.
	on []string
	// is reports whether a probe at the place shows the difference in the run.
	is func(p *place, tr *trace) bool
	// model acts as the kernel does, and shares no code with kprobes; nil if the outcome is not
	// compared.
	model func(p *place) *model
}

var (
	emulating = []string{"5.10", "6.1", "6.12", "6.12_without_preemption"}
	boosting  = []string{"4.4", "5.8", "5.10", "6.12_without_preemption"}
	every     = []string{"2.6.18", "4.4", "5.8", "5.8_preemption", "5.10", "6.1", "6.12", "6.12_without_preemption"}
)

// differences lists all known ones. The measured ones are in the transcripts of three real kernels;
// the others follow from the same rules (docs/spec 2.6 to 2.8, 7) and are marked.
var differences = []difference{
	{
		name: "loop with 67", field: "Step.Loop32KeepsUpper", on: emulating,
		why: "with a 32-bit counter only ecx is written, and the upper half of rcx stays; tested too early as well",
		off: func(c *profile.Config) { c.Step.Loop32KeepsUpper = false },
		is:  func(p *place, _ *trace) bool { return p.emulates(0xe0, 0xe1, 0xe2) && p.k.HasPrefix(0x67) }, model: emulated,
	},
	{
		name: "loop", field: "Step.LoopTestsBeforeDecrement", on: emulating,
		why: "loop, loope and loopne are emulated with the counter tested before it is decremented: 1 branches once too often, 0 not at all",
		off: func(c *profile.Config) { c.Step.LoopTestsBeforeDecrement = false },
		is:  func(p *place, _ *trace) bool { return p.emulates(0xe0, 0xe1, 0xe2) }, model: emulated,
	},
	{
		name: "ret imm16", field: "Step.RetIgnoresImm", on: emulating,
		why: "emulated, the immediate is ignored and the stack pointer ends too low by it; the copy in the slot, where it is boosted, is right",
		off: func(c *profile.Config) { c.Step.RetIgnoresImm = false },
		is:  func(p *place, _ *trace) bool { return p.emulates(0xc2) && p.k.Imm != 0 }, model: emulated,
	},
	{
		name: "VEX taken for legacy", field: "Step.VexAsLegacy", on: emulating,
		why: "the opcode after a VEX or EVEX prefix is taken for a one-byte opcode: vzeroupper is a ja to the next instruction, vpor a short jmp, vpsubd a cli; it is skipped",
		off: func(c *profile.Config) { c.Step.VexAsLegacy = false },
		is:  func(p *place, _ *trace) bool { return p.emulated && p.k.VexLen != 0 }, model: emulated,
	},
	{
		name: "pushf and popf with 66", field: "Step.FlagsMove8Bytes", on: emulating,
		why: "emulated, they move 8 bytes instead of 2 (not measured)",
		off: func(c *profile.Config) { c.Step.FlagsMove8Bytes = false },
		is:  func(p *place, _ *trace) bool { return p.emulates(0x9c, 0x9d) && p.k.HasPrefix(0x66) }, model: emulated,
	},
	{
		name: "popf of every bit", field: "Step.PopfTakesAll", on: emulating,
		why: "emulated, popf leaves in the flags what it popped: the processor clears reserved bits, RF, VM, VIF and VIP (not measured)",
		off: func(c *profile.Config) { c.Step.PopfTakesAll = false },
		is:  func(p *place, tr *trace) bool { return p.emulates(0x9d) && !p.k.HasPrefix(0x66) && p.popsMore(tr) }, model: emulated,
	},
	{
		name: "call with a prefix", field: "Step.CallReturnsPast5", on: emulating,
		why: "the emulated call returns to 5 bytes past its first byte, whatever its length: into the call itself (not measured)",
		off: func(c *profile.Config) { c.Step.CallReturnsPast5 = false },
		is:  func(p *place, _ *trace) bool { return p.emulates(0xe8) && len(p.insn) != 5 }, model: emulated,
	},
	{
		name: "call *%rsp", field: "Step.CallPushesFirst", on: emulating,
		why: "emulated, it goes to the stack pointer after the push (not measured)",
		off: func(c *profile.Config) { c.Step.CallPushesFirst = false },
		is:  func(p *place, _ *trace) bool { return p.emulates(0xff) && p.k.Reg() == 2 && p.k.RM() == 4 }, model: emulated,
	},
	{
		name: "far return", field: "Step.FarRetIsNear", on: emulating,
		why: "retf is emulated as ret: the code segment stays on the stack (not measured)",
		off: func(c *profile.Config) { c.Step.FarRetIsNear = false },
		is:  func(p *place, _ *trace) bool { return p.emulates(0xca, 0xcb) }, model: emulated,
	},
	{
		name: "14 bytes", field: "Step.LastInt3Missed", on: emulating,
		why: "the int3 after a copy of 14 bytes is the slot's last byte, where it is not looked for: no probe handles it, an oops (not measured)",
		off: func(c *profile.Config) { c.Step.LastInt3Missed = false },
		is: func(p *place, _ *trace) bool {
			return len(p.insn) == 14 && !p.ftrace && !p.boosted && !p.emulated && !p.config().Step.TrapFlag
		}, model: func(p *place) *model { return &model{p: p, enter: p.enterSlot} },
	},
	{
		name: "boosted fault", field: "Step.BoostedFaultInSlot", on: boosting,
		why:   "a fault that nothing catches is reported in the slot when the copy was boosted; the program is the same, the oops is not",
		off:   func(c *profile.Config) { c.Step.BoostedFaultInSlot = false },
		is:    func(p *place, tr *trace) bool { return p.boosted && p.faults(tr, true) },
		model: func(p *place) *model { return &model{p: p, enter: p.enterCopy} },
	},
	{
		name: "other exceptions", field: "Step.PageFaultsOnly", on: every,
		why: "kprobes are asked about page faults and general protection only: a division error in the copy is looked up in the exception table with the slot's address, and is not caught; an invalid opcode is reported there (not measured)",
		off: func(c *profile.Config) { c.Step.PageFaultsOnly, c.Step.BoostedFaultInSlot = false, false },
		is:  func(p *place, tr *trace) bool { return p.slot != 0 && !p.emulated && p.faults(tr, false) },
		model: func(p *place) *model {
			if p.boosted {
				return &model{p: p, enter: p.enterCopy}
			}
			return &model{p: p, enter: p.enterSlot, leave: p.leaveSlot}
		},
	},
	{
		name: "prefix before the opcode", field: "Step.FixupSkipsREXOnly", on: []string{"2.6.18"},
		why:   "the fix-up after the step finds the opcode after one REX only: rep ret goes to a wrong address, pushfw keeps the step's flags, a prefixed call returns into the slot (not measured)",
		off:   func(c *profile.Config) { c.Step.FixupSkipsREXOnly = false },
		is:    func(p *place, _ *trace) bool { return p.config().Step.FixupSkipsREXOnly && p.fixupMissed() },
		model: func(p *place) *model { return &model{p: p, enter: p.enterSlot, leave: p.leaveSlot} },
	},
	{
		name: "not an instruction", field: "Decoder.EVEX", on: []string{"2.6.18", "4.4"},
		why: "a decoder that does not know EVEX accepts the middle of an instruction for a boundary, and the breakpoint changes that instruction; what comes of it is not compared",
		off: func(c *profile.Config) { c.Decoder.EVEX = true },
		is:  func(p *place, _ *trace) bool { return !p.config().Decoder.EVEX && !p.realBoundary },
	},
}

// without turns every difference off.
func without(c *profile.Config) {
	for _, d := range differences {
		d.off(c)
	}
}

// listed is the difference that a probe at the place makes in the run, nil
// for none. A field that is off takes its difference from the list.
func (p *place) listed(tr *trace) *difference {
	for i := range differences {
		d := &differences[i]
		if d.enabled(p.config()) && d.is(p, tr) {
			return d
		}
	}
	return nil
}

func (d *difference) enabled(c *profile.Config) bool {
	off := *c
	d.off(&off)
	return off != *c
}

// emulates reports whether the instruction is emulated and has one of the
// opcodes, with no VEX prefix.
func (p *place) emulates(opcodes ...byte) bool {
	return p.emulated && p.k.VexLen == 0 && slices.Contains(opcodes, p.k.Opcode[0])
}

// faults reports whether the instruction faults in the run: by a page or
// general protection fault, or by another exception, a warning's among them.
func (p *place) faults(tr *trace, page bool) bool {
	for _, i := range tr.at[p.at] {
		s := &tr.steps[i]
		if !s.faulted && s.vector == 0 || s.vector == machine.VectorInt3 {
			continue
		}
		if page == (s.vector == machine.VectorGP || s.vector == machine.VectorPage) {
			return true
		}
	}
	return false
}

// popsMore reports whether the instruction pops bits that a processor does not
// take as they are.
func (p *place) popsMore(tr *trace) bool {
	const taken, fixed = 0x247fd5, 2
	for _, i := range tr.at[p.at] {
		if tr.steps[i].top&^taken != fixed {
			return true
		}
	}
	return false
}

// fixupMissed reports whether the instruction has a prefix, and its step needs a
// fix-up of more than ip.
func (p *place) fixupMissed() bool {
	if p.boosted || p.ftrace || len(p.insn) < 2 || !decoder.IsLegacyPrefix(p.insn[0]) {
		return false
	}
	switch op := opcode(p.insn); op {
	case 0x9c, 0x9d, 0xfa, 0xfb, 0xc2, 0xc3, 0xca, 0xcb, 0xcf, 0xea, 0xe8:
		return true
	case 0xff:
		return p.k.Reg() >= 2 && p.k.Reg() <= 5
	}
	return false
}
