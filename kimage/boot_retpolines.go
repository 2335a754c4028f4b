package kimage

import "kprobelab/x86"

// indirectThunk is the name before the register's in a retpoline thunk's.
const indirectThunk = "__x86_indirect_thunk_"

// thunkRegisters are the registers by number, as thunks are named.
var thunkRegisters = []string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}

// retpolines turns calls of and jumps to the thunks into indirect ones, where the kernel
// restricts indirect branches in another way or not at all (patch_retpoline; 5.16 and
// later, earlier ones have alternatives for it).
func (p *bootPatcher) retpolines(o tableOwner) {
	if p.feats.has[featRetpoline] || p.feats.has[featIndirectITS] {
		return
	}
	at, data := o.table(retpolineSites)
	thunks := map[x86.Addr]int{}
	for n, name := range thunkRegisters {
		if a, ok := p.img.symbolAddr(indirectThunk + name); ok {
			thunks[a] = n
		}
	}
	for off := 0; off+4 <= len(data); off += 4 {
		addr := rel32(at.Add(int64(off)), data[off:])
		if text := p.img.bytes(addr, p.img.branchLen(addr)); len(text) > 0 {
			p.retpoline(addr, text, thunks)
		}
	}
}

// retpoline writes one site, whose branch is all of text.
func (p *bootPatcher) retpoline(addr x86.Addr, text []byte, thunks map[x86.Addr]int) {
	end := len(text)
	reg, ok := thunks[rel32(addr.Add(int64(end)), text[end-4:])]
	if !ok {
		return
	}
	op, code := text[end-5], []byte(nil)
	if op&0xf0 == 0x80 { // a conditional jump (after 0f): the opposite one over an indirect jump
		code, op = []byte{0x70 | op&0x0f ^ 1, byte(end - 2)}, x86.Jmp32
	}
	modrm := byte(0xd0)
	if op == x86.Jmp32 {
		modrm = 0xe0
	}
	if reg >= 8 {
		code = append(code, 0x41)
	}
	code = append(code, 0xff, modrm|byte(reg&7))
	if op == x86.Jmp32 && len(code) < end {
		code = append(code, x86.Int3)
	}
	if len(code) <= end {
		p.nops.fill(text[copy(text, code):])
	}
}
