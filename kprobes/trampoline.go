package kprobes

import (
	"encoding/binary"
	"unsafe"

	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

// A probed function returns to the trampoline instead of its caller. The trampoline builds a
// register frame on the stack, calls the subsystem, and goes on to the caller
// (arch/x86/kernel/rethook.c, arch_rethook_trampoline; before 5.18 arch/x86/kernel/kprobes/core.c,
// kretprobe_trampoline; docs/spec 5.4).
//
// With rethook, where sp is frame+8 on entry:
//
//	frame        the trampoline's address, pushed again: a mark for
//	             unwinders; then the real return address
//	frame-8      ss    0x18; then the flags to return with
//	frame-16     sp    frame-8, and 16 more once the handler has the frame
//	frame-24     flags
//	frame-32     cs
//	frame-40     ip
//	frame-48     orig_ax
//	frame-56     di, the first of the 15 general registers
//	frame-168    r15, where the handler's argument points
//
// Without rethook nothing is pushed again and there is no ss word: sp is stored at
// frame, the other words are 8 bytes higher than above, and the real return address
// is written over the sp word.

// offsets in the register frame, in bytes.
const (
	offSP    = x86.Addr(unsafe.Offsetof(x86.PtRegs{}.SP))
	offSS    = x86.Addr(unsafe.Offsetof(x86.PtRegs{}.SS))
	offAbove = x86.PtRegsSize // the word above the frame
)

// field is the kind of value that is filled into an instruction.
type field int

const (
	fieldNone field = iota
	fieldSelf       // imm32: the trampoline's address, sign-extended
	fieldCall       // rel32: the call-out
)

// part is an instruction of the trampoline.
type part struct {
	code []byte
	fill field
	text string
}

var pushRegs = part{code: []byte{
	0x57, 0x56, 0x52, 0x51, 0x50, // rdi rsi rdx rcx rax
	0x41, 0x50, 0x41, 0x51, 0x41, 0x52, 0x41, 0x53, // r8 r9 r10 r11
	0x53, 0x55, // rbx rbp
	0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57, // r12 r13 r14 r15
}, text: "push the 15 general registers"}

var popRegs = part{code: []byte{
	0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, // r15 r14 r13 r12
	0x5d, 0x5b, // rbp rbx
	0x41, 0x5b, 0x41, 0x5a, 0x41, 0x59, 0x41, 0x58, // r11 r10 r9 r8
	0x58, 0x59, 0x5a, 0x5e, 0x5f, // rax rcx rdx rsi rdi
}, text: "pop them"}

var callOut = []part{
	{code: []byte{0x48, 0x89, 0xe7}, text: "mov %rsp,%rdi: the frame is the argument"},
	{code: []byte{0xe8, 0, 0, 0, 0}, fill: fieldCall, text: "call the subsystem"},
}

// rethookParts is the trampoline of 5.18 and later.
var rethookParts = join(
	[]part{
		{code: []byte{0x68, 0, 0, 0, 0}, fill: fieldSelf, text: "push $trampoline: over the return address"},
		{code: []byte{0x6a, 0x18}, text: "push $0x18: ss"},
		{code: []byte{0x54}, text: "push %rsp"},
		{code: []byte{0x9c}, text: "pushfq"},
		{code: []byte{0x48, 0x83, 0xec, 0x18}, text: "sub $24,%rsp: cs, ip, orig_ax"},
		pushRegs,
	},
	callOut,
	[]part{
		popRegs,
		{code: []byte{0x48, 0x83, 0xc4, 0x18}, text: "add $24,%rsp: drop orig_ax, ip, cs"},
		{code: []byte{0x48, 0x83, 0xc4, 0x10}, text: "add $16,%rsp: drop flags, sp"},
		{code: []byte{0x9d}, text: "popfq: from the ss word"},
		{code: []byte{0xc3}, text: "ret: to the caller"},
	})

// plainParts is the trampoline of 2.6.19 to 5.17.
var plainParts = join(
	[]part{
		{code: []byte{0x54}, text: "push %rsp: over the return address"},
		{code: []byte{0x9c}, text: "pushfq"},
		{code: []byte{0x48, 0x83, 0xec, 0x18}, text: "sub $24,%rsp: cs, ip, orig_ax"},
		pushRegs,
	},
	callOut,
	[]part{
		popRegs,
		{code: []byte{0x48, 0x83, 0xc4, 0x18}, text: "add $24,%rsp: drop orig_ax, ip, cs"},
		{code: []byte{0x9d}, text: "popfq"},
		{code: []byte{0xc3}, text: "ret: to the caller, whose address is in the sp word"},
	})

func join(lists ...[]part) (all []part) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// assemble lays the parts out at an address.
func assemble(parts []part, at, callout x86.Addr) []byte {
	var code []byte
	for _, p := range parts {
		start := len(code)
		code = append(code, p.code...)
		imm := code[len(code)-min(4, len(p.code)):]
		switch p.fill {
		case fieldSelf:
			binary.LittleEndian.PutUint32(imm, uint32(at))
		case fieldCall:
			next := at.Add(int64(start + len(p.code)))
			binary.LittleEndian.PutUint32(imm, uint32(callout.Sub(next)))
		}
	}
	return code
}

// trampolineNames returns the symbols of the trampoline and of the function that it calls.
func (k *Kprobes) trampolineNames() (trampoline, handler string) {
	if k.c.Kret.Rethook {
		return "arch_rethook_trampoline", "arch_rethook_trampoline_callback"
	}
	return "kretprobe_trampoline", "trampoline_handler"
}

// placeTrampoline puts the trampoline into guest memory, once.
func (k *Kprobes) placeTrampoline() error {
	if k.kret.trampoline != 0 {
		return nil
	}
	if k.c.Kret.TrampolineProbe {
		return k.placeTrampolineProbe()
	}
	name, handler := k.trampolineNames()
	callout, err := k.m.Callout(handler, k.trampolineReturn)
	if err != nil {
		return noTrampoline(err)
	}
	parts := plainParts
	if k.c.Kret.Rethook {
		parts = rethookParts
	}
	size := len(assemble(parts, 0, 0))
	at, err := k.m.AllocExec(size, name)
	if err != nil {
		return noTrampoline(err)
	}
	if err := k.m.PokeText(at, assemble(parts, at, callout)); err != nil {
		return noTrampoline(err)
	}
	k.kret.trampoline, k.kret.callout = at, callout
	return nil
}

// placeTrampolineProbe is 2.6.18's: the trampoline is a nop that carries a
// kprobe, and the probe's pre handler does the work and goes to the caller.
func (k *Kprobes) placeTrampolineProbe() error {
	name, _ := k.trampolineNames()
	at, err := k.m.AllocExec(1, name)
	if err != nil {
		return noTrampoline(err)
	}
	if err := k.m.PokeText(at, []byte{int3}); err != nil {
		return noTrampoline(err)
	}
	k.table.insert(&Kprobe{Addr: at, PreHandler: k.trampolineProbe, opcode: 0x90, internal: true})
	k.kret.trampoline = at
	return nil
}

func noTrampoline(cause error) error {
	r := probepoint.Refuse(rule.NoMemory, 0, "return trampoline")
	r.Cause = cause
	return r
}

// TrampolineSymbols are the names that the kernel's own trampoline of return probes has had.
var TrampolineSymbols = []string{"arch_rethook_trampoline", "__kretprobe_trampoline", "kretprobe_trampoline"}

// Kernels maps the address of the trampoline here to the address of the image's own trampoline. It
// returns any other address unchanged.
func (k *Kprobes) Kernels(addr uint64) uint64 {
	if addr == 0 || addr != uint64(k.Trampoline()) {
		return addr
	}
	for _, name := range TrampolineSymbols {
		if s := k.View().Lookup(name); len(s) == 1 {
			return uint64(s[0].Addr)
		}
	}
	return addr
}
