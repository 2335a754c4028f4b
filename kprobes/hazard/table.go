package hazard

import "kprobelab/profile"

// Where in the kernel several hazards have their cause.
const (
	srcCore    = "arch/x86/kernel/kprobes/core.c, "
	srcPrepare = srcCore + "prepare_emulation"
	srcStep    = srcCore + "setup_singlestep"
	srcOpt     = "arch/x86/kernel/kprobes/opt.c, "
)

// How hazards are known.
const (
	measured = "transcripts of booted 5.10, 6.1 and 6.12, input by input (docs/transparency.md)"
	byRuns   = "the kernel's rule, run on the machine and compared with the unprobed program (docs/transparency.md)"
	byModel  = "the random model of the optimizer, on two CPUs (docs/transparency.md)"
	byCode   = "the kernel's code"
	booted   = "booted 6.1.192 and 6.12.117 (docs/hazards.md)"
)

// table has a row for each hazard: first the hazards of a single probe.
var table = []Hazard{
	{
		ID: "CALL_PREFIX", Effect: Oops, Field: "Step.CallReturnsPast5",
		Sentence: "a call with a prefix (cs call, bnd call) returns to 5 bytes past its first byte, into its own last byte",
		Cause:    srcCore + "kprobe_emulate_call: int3_emulate_call pushes the int3's address + CALL_INSN_SIZE",
		Mend:     "push the address after the instruction: the probed address + ainsn.size",
		Evidence: "booted 6.1.192 and 6.12.117, 30 points of each (docs/hazards.md)",
		in:       func(c *profile.Config) bool { return c.Slot.Emulate && c.Step.CallReturnsPast5 }, at: callPrefix,
	},
	{
		ID: "CALL_REGISTER", Effect: Oops, Field: "Step.CallIndirectReturnsPast5",
		Sentence: "a call through a register (2 or 3 bytes) returns to 5 bytes past its first byte: what lies between is not run, or an instruction is cut",
		Cause:    srcCore + "kprobe_emulate_call_indirect: int3_emulate_call pushes the int3's address + CALL_INSN_SIZE",
		Mend:     "push the address after the instruction, as 6.8 does",
		Evidence: "the image's own kprobe_emulate_call and code; 6.6.9 has it, 6.8 has not",
		in:       func(c *profile.Config) bool { return c.Slot.Emulate && c.Step.CallIndirectReturnsPast5 }, at: callRegister,
	},
	{
		ID: "CALL_RSP", Effect: Oops, Field: "Step.CallPushesFirst",
		Sentence: "call *%rsp goes to the stack pointer after the push: 8 bytes too low, into the return address",
		Cause:    srcCore + "kprobe_emulate_call_indirect: the return address is pushed before the register is read",
		Mend:     "read the register before the push",
		Evidence: byRuns,
		in:       func(c *profile.Config) bool { return c.Slot.Emulate && c.Step.CallPushesFirst }, at: callRSP,
	},
	{
		ID: "JLE_JG", Effect: WrongResult, Field: "Step.JLENeedsBoth",
		Sentence: "jle is taken where the operands are less and equal, which they never are, and jg always",
		Cause:    srcCore + "kprobe_emulate_jcc: the conditions 14 and 15 are tested with && in place of ||",
		Mend:     "test ZF or (SF != OF), as 6.0 does",
		Evidence: "the image's own kprobe_emulate_jcc, asked when the image is opened",
		in:       func(c *profile.Config) bool { return c.Slot.Emulate && c.Step.JLENeedsBoth }, at: jle,
	},
	{
		ID: "LOOP_COUNT", Effect: WrongResult, Field: "Step.LoopTestsBeforeDecrement",
		Sentence: "loop, loope and loopne test the counter before it is decremented: with rcx = 1 they branch once too often, with rcx = 0 not at all",
		Cause:    srcCore + "kprobe_emulate_loop: (*(u64 *)&regs->cx)-- != 0",
		Mend:     "--(*(u64 *)&regs->cx) != 0, for each of the widths",
		Evidence: booted,
		in:       func(c *profile.Config) bool { return c.Slot.Emulate && c.Step.LoopTestsBeforeDecrement }, at: loopCount,
	},
	{
		ID: "LOOP_ECX", Effect: WrongRegister, Field: "Step.Loop32KeepsUpper",
		Sentence: "loop with an address-size prefix leaves the upper half of rcx, which a processor clears",
		Cause:    srcCore + "kprobe_emulate_loop writes through a u32 pointer",
		Mend:     "write regs->cx as a whole from the 32-bit result",
		Evidence: booted,
		in:       func(c *profile.Config) bool { return c.Slot.Emulate && c.Step.Loop32KeepsUpper }, at: loopECX,
	},
	{
		ID: "RET_IMM", Effect: Oops, Field: "Step.RetIgnoresImm",
		Sentence: "ret imm16 does not add its immediate: the caller goes on with a stack pointer that is too low",
		Cause:    srcCore + "kprobe_emulate_ret pops the address only; " + srcPrepare + " takes C2 for C3",
		Mend:     "keep the immediate in arch_specific_insn and add it to regs->sp, or refuse C2 with EOPNOTSUPP",
		Evidence: booted,
		in:       func(c *profile.Config) bool { return c.Slot.Emulate && c.Step.RetIgnoresImm }, at: retImm,
	},
	{
		ID: "FAR_RET", Effect: Oops, Field: "Step.FarRetIsNear",
		Sentence: "lret is taken for ret: the code segment stays on the stack, and the operand size is taken for 8 bytes",
		Cause:    srcPrepare + " has CA and CB in one case with C2 and C3",
		Mend:     "refuse CA and CB with EOPNOTSUPP, as CF is",
		Evidence: booted,
		in:       func(c *profile.Config) bool { return c.Slot.Emulate && c.Step.FarRetIsNear }, at: farRet,
	},
	{
		ID: "VEX", Effect: Oops, Field: "Step.VexAsLegacy",
		Sentence: "the opcode after a VEX, EVEX or XOP prefix is taken for a one-byte opcode: vzeroupper for ja, vpsubd for cli, vcmpps for ret; the instruction is skipped, or worse",
		Cause:    srcPrepare + " looks at insn.opcode without asking for insn.vex_prefix",
		Mend:     "leave instructions with a VEX, EVEX or XOP prefix to the slot: if (insn_is_avx(insn)) return 0",
		Evidence: booted,
		in:       func(c *profile.Config) bool { return c.Slot.Emulate && c.Step.VexAsLegacy }, at: vex,
	},
	{
		ID: "FLAGS_16", Effect: Oops, Field: "Step.FlagsMove8Bytes",
		Sentence: "pushfw and popfw move 8 bytes in place of 2: the stack pointer ends 6 bytes off",
		Cause:    srcPrepare + " does not look at the operand size of 9C and 9D",
		Mend:     "refuse 9C and 9D where insn.opnd_bytes is 2",
		Evidence: booted,
		in:       func(c *profile.Config) bool { return c.Slot.Emulate && c.Step.FlagsMove8Bytes }, at: flags16,
	},
	{
		ID: "POPF_BITS", Effect: Harmless, Field: "Step.PopfTakesAll",
		Sentence: "popf leaves every bit that it popped in the flags: VIF, VIP and RF, which a processor clears",
		Cause:    srcCore + "kprobe_emulate_ifmodifiers writes regs->flags unmasked",
		Mend:     "mask what is popped with FIXUP_EFLAGS bits, as the processor does",
		Evidence: byRuns,
		in:       func(c *profile.Config) bool { return c.Slot.Emulate && c.Step.PopfTakesAll }, at: popf,
	},
	{
		ID: "LAST_INT3", Effect: Oops, Field: "Step.LastInt3Missed",
		Sentence: "an instruction of 14 bytes: the int3 after its copy is the slot's last byte, where the kernel does not look for it, so nobody takes it",
		Cause:    srcCore + "kprobe_is_ss: ip < ainsn.insn + MAX_INSN_SIZE, and ip is one past the int3",
		Mend:     "compare with <=",
		Evidence: booted,
		in:       func(c *profile.Config) bool { return c.Slot.Emulate && c.Step.LastInt3Missed }, at: lastInt3,
	},
	{
		ID: "HALT", Effect: Hang,
		Sentence: "hlt and mwait run in the slot with interrupts off: no interrupt wakes the CPU (mwait: unless bit 0 of ecx is set, or the line that it watches is written); one that goes offline there misses every probe once it is online again",
		Cause:    srcStep + " clears IF for the step, and nothing refuses or emulates hlt",
		Mend:     "refuse F4 and 0F 01 C9 in arch_prepare_kprobe, or step them with the interrupt flag that they had",
		Evidence: booted,
		in:       func(*profile.Config) bool { return true }, at: halt,
	},
	{
		ID: "INT3_PATH", Effect: Oops, Field: "Step.Int3IsNMI", off: true,
		Sentence: "an int3 in a function that the int3 exception runs before or after the kprobes handler, out of idle or always, is hit by the exception itself: the stack ends, or the kernel stops with BUG",
		Cause:    "arch/x86/kernel/traps.c, do_int3 calls ist_enter before kprobe_int3_handler and ist_exit after it; rcu_dynticks_eqs_exit, ist_exit and rcu_nmi_exit are on no blacklist, to 5.0 nor are ist_enter, rcu_nmi_enter and poke_int3_handler",
		Mend:     "NOKPROBE_SYMBOL for each of them; from 5.8 on they are noinstr",
		Evidence: "a booted 5.4.286 stops at a probe in rcu_dynticks_eqs_exit (docs/conformance.md); the others by the code of 4.18, 4.19.78 and 5.4.286",
		in:       func(c *profile.Config) bool { return !c.Step.Int3IsNMI }, at: int3Path,
	},
	{
		ID: "OTHER_FAULT", Effect: Oops, Field: "Step.PageFaultsOnly",
		Sentence: "a fault of a copy other than a page fault or a general protection fault is looked up at the slot's address: the exception table has no entry there, and the ud2 of a WARN is no warning",
		Cause:    "kprobe_fault_handler is called by the handlers of page faults and general protection faults only",
		Mend:     "call it in the handlers of #DE, #MF, #XF and #UD before the exception table is searched",
		Evidence: booted,
		in:       func(c *profile.Config) bool { return c.Step.PageFaultsOnly }, at: otherFault,
	},
	{
		ID: "FAULT_ADDRESS", Effect: Harmless, Field: "Step.BoostedFaultInSlot",
		Needs:    "a fault that nothing catches, in any boosted copy",
		Sentence: "a fault that nothing catches is reported in the slot when the copy was boosted: the program ends as it would, and the oops shows another address",
		Cause:    srcStep + ": a boosted copy runs without a current kprobe",
		Mend:     "find the probe by the slot's address when an oops is printed",
		Evidence: byRuns,
		in:       func(c *profile.Config) bool { return c.Step.BoostedFaultInSlot && !c.Preemption },
	},
	{
		ID: "MASKING", Effect: Oops, Field: "Slot.RefuseMasking", off: true,
		Sentence: "mov to ss masks the trap after it: the step does not end, and the CPU runs on past the copy in the slot",
		Cause:    srcCore + "can_probe accepts pop ss and mov ss",
		Mend:     "refuse them, as 4.17 does",
		Evidence: byCode,
		in:       func(c *profile.Config) bool { return c.Step.TrapFlag && !c.Slot.RefuseMasking }, at: masking,
	},
	{
		ID: "PREFIX_FIXUP", Effect: Oops, Field: "Step.FixupSkipsREXOnly",
		Sentence: "after the step, the kernel looks for the opcode after one REX only: rep ret goes to a wrong address, a call with a prefix returns into the slot",
		Cause:    "arch/x86_64/kernel/kprobes.c, resume_execution (2.6.18)",
		Mend:     "skip the legacy prefixes, as later releases do",
		Evidence: byRuns,
		in:       func(c *profile.Config) bool { return c.Step.TrapFlag && c.Step.FixupSkipsREXOnly }, at: prefixFixup,
	},
	{
		ID: "EVEX_BOUNDARY", Effect: WrongResult, Field: "Decoder.EVEX", off: true,
		Needs:    "a probe inside an instruction with an EVEX prefix",
		Sentence: "a decoder that does not know EVEX takes the middle of an instruction for a boundary, and the breakpoint changes that instruction",
		Cause:    "arch/x86/lib/insn.c knows no EVEX",
		Mend:     "decode EVEX, as 4.9 does",
		Evidence: byRuns,
		in:       func(c *profile.Config) bool { return !c.Decoder.EVEX },
	},
	{
		ID: "NESTED_THIRD", Effect: Oops, Field: "Step.NestedReenterBUG",
		Needs:    "a third probe, hit while the instruction of a nested one is stepped",
		Sentence: "a hit while a nested probe is stepped is unrecoverable: the kernel stops with BUG",
		Cause:    srcCore + "reenter_kprobe, case KPROBE_REENTER",
		Mend:     "it is meant so: what steps must not be probed",
		Evidence: measured,
		in:       func(c *profile.Config) bool { return c.Step.NestedReenterBUG },
	},
	{
		ID: "SWITCH_RETURN", Effect: Oops, Field: "Resolve.SkipENDBR",
		Needs:    "a return probe of __switch_to, which has an ftrace site only without the function graph tracer",
		Sentence: "the blacklist of return probes has the address of __switch_to, and an ENDBR moves the probe off it: the next task looks for a return address of its own, has none, and the kernel stops with BUG",
		Cause:    "kernel/kprobes.c, register_kretprobe compares kprobe_addr, which is past the ENDBR, with kretprobe_blacklist",
		Mend:     "compare the function's entry",
		Evidence: "booted small kernels of 5.19, 6.1.192, 6.6.9 and 6.8 (docs/conformance.md), and Debian's 6.12.117 with a module (below)",
		in:       func(c *profile.Config) bool { return c.Resolve.SkipENDBR },
	},
	{
		ID: "OPT_NEIGHBOUR", Effect: Oops, Field: "Optimize.EnabledNeighboursOnly",
		Needs:    "a disabled probe that is still a jump, and another at most 4 bytes before it",
		Sentence: "a probe that is disabled but still a jump does not count as a neighbour: another is optimized over it, and its detour leads back into the middle of that jump",
		Cause:    "kernel/kprobes.c, and " + srcOpt + "arch_check_optimized_kprobe ask kprobe_disabled",
		Mend:     "ask kprobe_disarmed, as 6.3 does",
		Evidence: byModel,
		in: func(c *profile.Config) bool {
			return c.Optprobes() && c.Optimize.EnabledNeighboursOnly
		},
	},
	{
		ID: "OPT_FIRST", Effect: Oops, Field: "Optimize.FirstProbeEndsSearch",
		Needs:    "a jump, a probe after it that is no jump, and a new probe in what the jump runs over",
		Sentence: "the search for the jump that runs over an address ends at the nearest probe before it, so the jump of one farther off is not seen, and its displacement is taken for code",
		Cause:    srcCore + "__recover_optprobed_insn and get_optimized_kprobe stop at the first probe",
		Mend:     "go on to the first optimized probe within reach, as 7.2 does",
		Evidence: byModel,
		in:       func(c *profile.Config) bool { return c.Optprobes() && c.Optimize.FirstProbeEndsSearch },
	},
	{
		ID: "OPT_UNLISTED", Effect: Oops, Field: "Optimize.RecoversUnlistedOnly",
		Needs:    "a registration within a jump that waits to be undone",
		Sentence: "while a jump waits to be undone, registration takes its displacement for code",
		Cause:    srcOpt + "__recover_optprobed_insn tests list_empty(&op->list)",
		Mend:     "ask optprobe_queued_unopt too, as 6.3 does",
		Evidence: byModel,
		in:       func(c *profile.Config) bool { return c.Optprobes() && c.Optimize.RecoversUnlistedOnly },
	},
	{
		ID: "OPT_CLEARED", Effect: Oops, Field: "Optimize.ClearedWhenQueued",
		Needs:    "a probe that is enabled while its jump waits to be undone",
		Sentence: "a probe that is enabled while its jump waits to be undone keeps the displacement after its int3, and steps into it once OPTIMIZED is cleared",
		Cause:    "kernel/kprobes.c, unoptimize_kprobe clears OPTIMIZED when it queues",
		Mend:     "clear it when the jump is undone, as 5.6 does",
		Evidence: byModel,
		in:       func(c *profile.Config) bool { return c.Optprobes() && c.Optimize.ClearedWhenQueued },
	},
}
