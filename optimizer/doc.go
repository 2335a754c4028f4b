// Package optimizer decides whether a kprobe can be jump-optimized, with every
// reason against it, and makes the detour buffer, as pure functions of code
// and a profile.
//
// It must not know of CPUs, locks, time or registered probes: queues, the
// worker and text patching are the kprobes package's, and so are a
// post_handler and a neighbour in the region, which prevent optimization too.
//
// The bytes around a probe at A, as the kernel's documentation draws them:
//
//	      A   A+1 ......... A+4  A+5
//	     [e9][ rel32 to the buffer]         the jump, 5 bytes
//	DCR  [insn 1   ][insn 2 ][insn 3   ]    whole instructions, at least 5 bytes
//	JTPR    [.........................]     A+1 to A+5: no jump may lead here
//
// The documentation ends the JTPR with the jump, at A+4. The code also refuses
// a jump to A+5, the byte after the jump. This package does as the code does
// and marks such a reason (Reason.BeyondDoc).
//
// The View's Reader, x86asm by default, returns the lengths, branches and targets that decide this.
// Where the kernel's decoder reads an instruction differently, the kernel's reading decides, and
// the Verdict lists the instruction (Verdict.Overruled).
//
// The rules come from arch/x86/kernel/kprobes/opt.c (can_optimize, copy_optimized_instructions,
// arch_prepare_optimized_kprobe; docs/spec 4.2 to 4.4).
package optimizer
