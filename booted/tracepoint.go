package booted

import (
	"encoding/binary"
	"fmt"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// tracepointCode is a tracepoint's callback in guest memory: it makes a frame of the registers
// that have the parameters, and of the frame pointer, and calls a stub with the frame's address, whose own address stands at
// stubAt.
var tracepointCode = []byte{
	0x48, 0x81, 0xec, 0xa8, 0, 0, 0, // sub $0xa8,%rsp: struct pt_regs
	0x48, 0x89, 0x7c, 0x24, 0x70, // mov %rdi,0x70(%rsp)
	0x48, 0x89, 0x74, 0x24, 0x68, // mov %rsi,0x68(%rsp)
	0x48, 0x89, 0x54, 0x24, 0x60, // mov %rdx,0x60(%rsp)
	0x48, 0x89, 0x4c, 0x24, 0x58, // mov %rcx,0x58(%rsp)
	0x4c, 0x89, 0x44, 0x24, 0x48, // mov %r8,0x48(%rsp)
	0x4c, 0x89, 0x4c, 0x24, 0x40, // mov %r9,0x40(%rsp)
	0x48, 0x89, 0x6c, 0x24, 0x20, // mov %rbp,0x20(%rsp): who unwinds the stack asks for it
	0x48, 0x89, 0xa4, 0x24, 0x98, 0, 0, 0, // mov %rsp,0x98(%rsp)
	0x48, 0xc7, 0x84, 0x24, 0x88, 0, 0, 0, 0x10, 0, 0, 0, // movq $__KERNEL_CS,0x88(%rsp)
	0x48, 0x8b, 0x84, 0x24, 0xa8, 0, 0, 0, // mov 0xa8(%rsp),%rax: who calls
	0x48, 0x89, 0x84, 0x24, 0x80, 0, 0, 0, // mov %rax,0x80(%rsp)
	0x48, 0x89, 0xe7, // mov %rsp,%rdi
	0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, // mov $stub,%rax
	0xff, 0xd0, // call *%rax
	0x48, 0x81, 0xc4, 0xa8, 0, 0, 0, // add $0xa8,%rsp
	0xc3, // ret
}

const stubAt = 83

// frameSize is the number of bytes that the callback takes of the stack: its registers and its return address.
const frameSize = 0xa8 + 8

// Tracepoint has the booted kernel enable a tracepoint, by its own tracepoint_probe_register:
// its key is patched, and the callback is in its list. hit gets the parameters in the registers of
// a function's. The Link's Close takes the callback away.
func (k *Kernel) Tracepoint(name string, hit func(regs *x86.PtRegs)) (*Link, error) {
	tp := k.image.Lookup(kimage.TracepointPrefix + name)
	enable, disable := k.image.Lookup("tracepoint_probe_register"), k.image.Lookup("tracepoint_probe_unregister")
	if len(tp) != 1 || len(enable) != 1 || len(disable) != 1 {
		return nil, fmt.Errorf("tracepoint %s: %w", name, errno.ENOENT)
	}
	stub, err := k.machine.Callout("tracepoint_"+name+".out", func(_ x86.Addr, regs *x86.PtRegs) {
		regs.SP += frameSize // as who calls has it
		hit(regs)
	})
	if err != nil {
		return nil, err
	}
	code := append([]byte(nil), tracepointCode...)
	binary.LittleEndian.PutUint64(code[stubAt:], uint64(stub))
	at, err := k.machine.AllocExec(len(code), "tracepoint_"+name)
	if err == nil {
		err = k.machine.PokeText(at, code)
	}
	if err != nil {
		return nil, err
	}
	call := func(fn x86.Addr) error {
		v, err := k.machine.CallAddr(fn, uint64(tp[0].Addr), uint64(at), 0)
		if err == nil && int32(v) < 0 {
			err = errno.Errno(-int32(v))
		}
		if err != nil {
			err = fmt.Errorf("tracepoint %s: %w", name, err)
		}
		return err
	}
	if err := call(enable[0].Addr); err != nil {
		return nil, err
	}
	return &Link{func() error { return call(disable[0].Addr) }}, nil
}
