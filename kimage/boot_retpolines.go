package kimage

import (
	"bytes"
	"slices"

	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// csPrefix is a prefix without effect.
const csPrefix = 0x2e

// indirectThunk is the name before the register's in a retpoline thunk's.
const indirectThunk = "__x86_indirect_thunk_"

// thunkRegisters are the registers by number, as thunks are named.
var thunkRegisters = []string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}

// retpolines turns calls of and jumps to the thunks into indirect ones, if the kernel
// restricts indirect branches in another way, with an lfence, or not at all (patch_retpoline;
// 5.16 and later; earlier releases have alternatives for it).
func (p *bootPatcher) retpolines(o tableOwner) {
	if p.feats.has[p.feats.retpoline] && !p.lfenced() || p.feats.returnThunk == itsReturnThunk {
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
		addr := opened.Rel32(at.Add(int64(off)), data[off:])
		if text := p.img.bytes(addr, p.img.branchLen(addr)); len(text) > 0 {
			p.retpoline(addr, text, thunks)
		}
	}
}

// lfenced: retpolines are an lfence and an indirect branch.
func (p *bootPatcher) lfenced() bool { return p.feats.has[p.feats.retpoline+1] }

// retpoline writes one site, whose branch is all of text.
func (p *bootPatcher) retpoline(addr x86.Addr, text []byte, thunks map[x86.Addr]int) {
	end := len(text)
	reg, ok := thunks[opened.Rel32(addr.Add(int64(end)), text[end-4:])]
	if !ok {
		return
	}
	op, code := text[end-5], []byte(nil)
	if op&0xf0 == 0x80 { // a conditional jump (after 0f): the opposite one over an indirect jump
		code, op = []byte{0x70 | op&0x0f ^ 1, byte(end - 2)}, x86.Jmp32
	}
	if p.lfenced() {
		code = append(code, lfence...)
	}
	at, modrm := len(code), byte(0xd0)
	if op == x86.Jmp32 {
		modrm = 0xe0
	}
	if reg >= 8 {
		code = append(code, 0x41)
	}
	code = append(code, 0xff, modrm|byte(reg&7))
	switch left := end - len(code); {
	case left <= 0:
	case p.forms.prefixes && op == x86.Jmp32:
		code = append(code, bytes.Repeat([]byte{x86.Int3}, left)...)
	case p.forms.prefixes && left <= 3:
		code = slices.Insert(code, at, bytes.Repeat([]byte{csPrefix}, left)...)
	case p.forms.int3AfterJump && op == x86.Jmp32:
		code = append(code, x86.Int3)
	}
	if len(code) > end {
		return // it does not fit, and stays
	}
	for n := len(code); n < end; n++ {
		code = append(code, nopl[1][0])
	}
	p.alternatives().joinNops(code)
	copy(text, code)
}
