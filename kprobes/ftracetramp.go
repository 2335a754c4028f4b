package kprobes

import (
	"encoding/binary"

	"kprobelab/x86"
)

// The tracer's trampoline is the function that a traced function's site calls
// (arch/x86/kernel/ftrace_64.S, ftrace_regs_caller; each registration has its own copy, named
// ftrace_trampoline, that calls its function directly). It builds a register frame with the
// function's registers at the site, calls the handler, and returns to the frame's ip with the
// frame's registers and flags.
//
// S is the stack pointer at the site, where the function's own return address
// lies; the call has put A+5 below it:
//
//	S-8      A+5; in the end the frame's ip
//	S-16     flags; in the end the frame's
//	S-24     ss    0x18; the frame begins here, downwards
//	S-32     sp    S
//	S-40     flags
//	S-48     cs    0x10
//	S-56     ip    A+5
//	S-64     orig_ax   0
//	S-72     di, the first of the 15 general registers
//	S-184    r15, where the handler's argument points
//
// What a handler does to sp, ss, cs and orig_ax is lost. The kernel stores the
// registers where this pushes them; the frame is the same.

var ftraceParts = join(
	[]part{
		{code: []byte{0x9c}, text: "pushfq"},
		{code: []byte{0x6a, 0x18}, text: "push $0x18: ss"},
		{code: []byte{0x54}, text: "push %rsp: sp is 24 too low"},
		{code: []byte{0x48, 0x83, 0x04, 0x24, 0x18}, text: "addq $24,(%rsp)"},
		{code: []byte{0xff, 0x74, 0x24, 0x10}, text: "push 16(%rsp): flags"},
		{code: []byte{0x6a, 0x10}, text: "push $0x10: cs"},
		{code: []byte{0xff, 0x74, 0x24, 0x28}, text: "push 40(%rsp): ip"},
		{code: []byte{0x6a, 0x00}, text: "push $0: orig_ax"},
		pushRegs,
	},
	callOut,
	[]part{
		popRegs,
		{code: []byte{0x48, 0x83, 0xc4, 0x08}, text: "add $8,%rsp: drop orig_ax"},
		{code: []byte{0x8f, 0x44, 0x24, 0x28}, text: "pop 40(%rsp): ip, over the return address"},
		{code: []byte{0x48, 0x83, 0xc4, 0x08}, text: "add $8,%rsp: drop cs"},
		{code: []byte{0x8f, 0x44, 0x24, 0x10}, text: "pop 16(%rsp): flags, over the saved ones"},
		{code: []byte{0x48, 0x83, 0xc4, 0x10}, text: "add $16,%rsp: drop sp, ss"},
		{code: []byte{0x9d}, text: "popfq"},
		{code: []byte{0xc3}, text: "ret: to the frame's ip"},
	})

// placeFtraceTrampoline puts a registration's trampoline into guest memory,
// once.
func (k *Kprobes) placeFtraceTrampoline(ops *ftraceOps) (err error) {
	if ops.trampoline != 0 {
		return nil
	}
	if err := k.placeFtraceHandler(); err != nil {
		return err
	}
	at, err := k.m.AllocExec(len(assemble(ftraceParts, 0, 0)), "ftrace_trampoline")
	if err != nil {
		return err
	}
	if err := k.m.PokeText(at, assemble(ftraceParts, at, k.ftrace.handler)); err != nil {
		return err
	}
	ops.trampoline = at
	return nil
}

// placeFtraceHandler makes the call-out that the trampolines call, once.
func (k *Kprobes) placeFtraceHandler() (err error) {
	if k.ftrace.handler == 0 {
		k.ftrace.handler, err = k.m.Callout("kprobe_ftrace_handler", k.ftraceHandler)
	}
	return err
}

// callInsn is a call rel32.
func callInsn(at, target x86.Addr) []byte {
	b := []byte{0xe8, 0, 0, 0, 0}
	binary.LittleEndian.PutUint32(b[1:], uint32(target.Sub(at.Add(ftraceSiteSize))))
	return b
}
