package patch

import (
	"bytes"
	"slices"

	"kprobelab/x86"
)

// csPrefix is a prefix without effect.
const csPrefix = 0x2e

// Lfence is the instruction lfence.
var Lfence = []byte{0x0f, 0xae, 0xe8}

// Retpoline writes an indirect branch through a register over a branch to the register's thunk, which is all
// of text; fenced: an lfence comes before it. Where that does not fit, text stays.
func (p *Patcher) Retpoline(text []byte, reg int, fenced bool) {
	end := len(text)
	op, code := text[end-5], []byte(nil)
	if op&0xf0 == 0x80 { // a conditional jump (after 0f): the opposite one over an indirect jump
		code, op = []byte{0x70 | op&0x0f ^ 1, byte(end - 2)}, x86.Jmp32
	}
	if fenced {
		code = append(code, Lfence...)
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
	case p.Forms.Prefixes && op == x86.Jmp32:
		code = append(code, bytes.Repeat([]byte{x86.Int3}, left)...)
	case p.Forms.Prefixes && left <= 3:
		code = slices.Insert(code, at, bytes.Repeat([]byte{csPrefix}, left)...)
	case p.Forms.Int3AfterJump && op == x86.Jmp32:
		code = append(code, x86.Int3)
	}
	if len(code) > end {
		return // it does not fit, and stays
	}
	for n := len(code); n < end; n++ {
		code = append(code, Nopl[1][0])
	}
	p.joinNops(code)
	copy(text, code)
}
