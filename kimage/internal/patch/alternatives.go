package patch

import (
	"bytes"
	"encoding/binary"

	"kprobelab/decoder"
	"kprobelab/kimage/internal/opened"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Alternative is one alternative of a place in the text.
type Alternative struct {
	// Addr is the text, Repl what replaces it; Len and ReplLen are their lengths in bytes.
	Addr, Repl   x86.Addr
	Len, ReplLen int
	// Call: the text is a call through memory that becomes a direct one.
	Call bool
	// Chosen: the kernel replaces the text. Otherwise it only joins the text's no-operations.
	Chosen bool
}

// Forms describes the bytes that a kernel writes when it patches.
type Forms struct {
	Nops Nops
	// Relocates: each instruction of an alternative is relocated, and no-operations of any form
	// are joined (6.5 and later); before, only a lone call or jmp is.
	Relocates bool
	// JoinsJumps: no-operations after a jump to their end become one with it (6.5 to 6.9).
	JoinsJumps bool
	// Int3AfterJump: an indirect jump in the place of a retpoline is followed by an int3 (5.19 and
	// later, and stable releases).
	Int3AfterJump bool
	// Prefixes: an indirect call in the place of a retpoline is filled by CS prefixes, and a jump by
	// int3s, in place of no-operations (6.18 and later).
	Prefixes bool
	// Zero is the code that replaces a call of __static_call_return0.
	Zero []byte
}

// Patcher writes alternatives and retpolines as a kernel does.
type Patcher struct {
	Image   opened.Image
	Forms   *Forms
	Decoder profile.Decoder
}

// Alternatives patches in the table's order, for later entries of a place override
// earlier ones.
func (p *Patcher) Alternatives(list []Alternative) {
	if p.Forms.Relocates {
		equalLengths(list)
	}
	for i := range list {
		a := &list[i]
		if p.Forms.Relocates {
			p.modern(a)
			continue
		}
		text := p.Image.Bytes(a.Addr, a.Len)
		if a.Chosen {
			p.classic(a, text)
		}
		p.classicNops(text)
	}
}

// equalLengths gives the entries of one place the longest one's length:
// nested alternatives pad differently (6.12).
func equalLengths(list []Alternative) {
	for i := range list {
		for j := i + 1; j < len(list) && list[j].Addr == list[i].Addr; j++ {
			n := max(list[i].Len, list[j].Len)
			list[i].Len, list[j].Len = n, n
		}
	}
}

// classic is the replacement to 6.2: only a lone call or jmp is relocated.
func (p *Patcher) classic(a *Alternative, text []byte) {
	buf := make([]byte, a.Len)
	copy(buf, p.Image.Bytes(a.Repl, a.ReplLen))
	for i := a.ReplLen; i < len(buf); i++ {
		buf[i] = 0x90
	}
	if a.ReplLen == 5 {
		target := opened.Rel32(a.Repl+5, buf[1:])
		switch buf[0] {
		case 0xe8:
			binary.LittleEndian.PutUint32(buf[1:], uint32(target.Sub(a.Addr+5)))
		case 0xe9:
			p.shortJump(buf, target.Sub(a.Addr))
		}
	}
	copy(text, buf)
}

// shortJump writes the jmp of that distance from its own start. Only a
// forward one becomes short: the kernel's test for backward ones never holds.
func (p *Patcher) shortJump(buf []byte, dist int64) {
	if dist >= 0 && dist-2 <= 127 {
		buf[0], buf[1] = 0xeb, byte(dist-2)
		p.Forms.Nops.Fill(buf[2:5])
		return
	}
	binary.LittleEndian.PutUint32(buf[1:], uint32(dist-5))
}

// classicNops makes each run of single-byte nops one of long ones.
func (p *Patcher) classicNops(text []byte) {
	for i := 0; i < len(text); {
		k, err := decoder.DecodeKernel(text[i:], &p.Decoder)
		if err != nil || k.Length == 0 {
			return
		}
		if k.Length != 1 || text[i] != 0x90 {
			i += k.Length
			continue
		}
		end := i
		for end < len(text) && text[end] == 0x90 {
			end++
		}
		if end-i > 1 {
			p.Forms.Nops.Fill(text[i:end])
		}
		i = end
	}
}

// modern is the replacement from 6.3 on, which relocates every instruction.
func (p *Patcher) modern(a *Alternative) {
	text := p.Image.Bytes(a.Addr, a.Len)
	if text == nil {
		return
	}
	buf := bytes.Clone(text)
	if a.Chosen {
		n := copy(buf, p.Image.Bytes(a.Repl, a.ReplLen))
		if a.Call {
			if n = p.directCall(a, text, buf); n < 0 {
				return
			}
		}
		for i := n; i < len(buf); i++ {
			buf[i] = 0x90
		}
		p.relocate(a, buf)
	}
	p.joinNops(buf)
	copy(text, buf)
}

// joinNops makes the no-operations of code that is to be written long ones.
func (p *Patcher) joinNops(buf []byte) {
	switch {
	case !p.Forms.Relocates:
		p.classicNops(buf)
	case p.Forms.JoinsJumps:
		p.jumpedNops(buf)
	default:
		p.modernNops(buf)
	}
}

// jumpedNops joins each run of nops of any form, and a jump before it that leads to its end.
func (p *Patcher) jumpedNops(buf []byte) {
	jump, target := 0, 0
	for i := 0; i < len(buf); {
		k, err := decoder.DecodeKernel(buf[i:], &p.Decoder)
		if err != nil || k.Length == 0 {
			return
		}
		next := i + k.Length
		n, nop := p.nopAt(buf[i:])
		switch {
		case k.Opcode[0] == x86.Jmp32 || k.Opcode[0] == jmp8:
			jump, target = i, next+int(k.Imm)
		case nop && n > 0:
			for next < len(buf) {
				n, more := p.nopAt(buf[next:])
				if n == 0 || !more {
					break
				}
				next += n
			}
			if target != 0 && next == target {
				i = jump
			}
			next = min(next, len(buf))
			p.Forms.Nops.Fill(buf[i:next])
		default:
			target = 0
		}
		i = next
	}
}

// jmp8 is a jump by a distance of one byte.
const jmp8 = 0xeb

// directCall makes "call *ptr(%rip)" a direct call of the pointer's present value,
// relative to the replacement's address. It returns the length, 0 for a call of
// nop_func, -1 if the text is no such call.
func (p *Patcher) directCall(a *Alternative, text, buf []byte) int {
	if a.ReplLen != 5 || buf[0] != 0xe8 || len(text) < 6 || text[0] != 0xff || text[1] != 0x15 {
		return -1
	}
	slot := p.Image.Bytes(opened.Rel32(a.Addr+6, text[2:]), 8)
	if slot == nil {
		return -1
	}
	target := opened.Abs64(slot)
	if target == 0 {
		return 5 // stays a call of BUG_func
	}
	if nop, ok := p.Image.SymbolAddr("nop_func"); ok && nop == target {
		return 0
	}
	binary.LittleEndian.PutUint32(buf[1:], uint32(target.Sub(a.Repl+5)))
	return 5
}

// relocate corrects what depends on the instruction pointer and points
// outside the replacement, and shortens jumps.
func (p *Patcher) relocate(a *Alternative, buf []byte) {
	moved := uint32(a.Repl.Sub(a.Addr))
	outside := func(off int64) bool { return off < 0 || off > int64(a.ReplLen) }
	for i := 0; i < len(buf); {
		k, err := decoder.DecodeKernel(buf[i:], &p.Decoder)
		if err != nil || k.Length == 0 || i+k.Length > len(buf) {
			return
		}
		next := i + k.Length
		if isBranch(&k) {
			if outside(int64(next)+k.Imm) && k.ImmLen == 4 {
				at := buf[i+k.ImmOff:]
				binary.LittleEndian.PutUint32(at, binary.LittleEndian.Uint32(at)+moved)
			}
			if k.Opcode[0] == 0xe9 {
				shortenJump(buf[i:next], int32(k.Imm)+int32(moved)+3)
			}
		}
		if k.RIPRelative() && outside(int64(next)+int64(k.Disp)) {
			at := buf[i+k.DispOff:]
			binary.LittleEndian.PutUint32(at, binary.LittleEndian.Uint32(at)+moved)
		}
		i = next
	}
}

// isBranch reports a call, jmp or jcc with a relative target.
func isBranch(k *decoder.Kernel) bool {
	op := k.Opcode[0]
	return op == 0xe8 || op == 0xe9 || op == 0xeb || op>>4 == 7 || op == 0x0f && k.Opcode[1]>>4 == 8
}

// shortenJump makes jmp rel32 a jmp rel8 followed by int3s, if the distance fits.
func shortenJump(insn []byte, dist int32) {
	if dist != int32(int8(dist)) {
		return
	}
	insn[0], insn[1] = 0xeb, byte(dist)
	fillInt3(insn[2:])
}

// modernNops joins each run of nops of any form.
func (p *Patcher) modernNops(buf []byte) {
	for i := 0; i < len(buf); {
		n, nop := p.nopAt(buf[i:])
		if n == 0 {
			return
		}
		end := i + n
		for nop && end < len(buf) {
			n, more := p.nopAt(buf[end:])
			if n == 0 || !more {
				break
			}
			end += n
		}
		if nop {
			if i+n == len(buf) {
				return // one at the end is taken for a long one already
			}
			end = min(end, len(buf))
			p.Forms.Nops.Fill(buf[i:end])
		}
		i = end
	}
}

// nopAt returns the length of the instruction at b, 0 if there is none, and whether it
// is a nop (not pause).
func (p *Patcher) nopAt(b []byte) (int, bool) {
	k, err := decoder.DecodeKernel(b, &p.Decoder)
	if err != nil {
		return 0, false
	}
	if k.Opcode[0] == 0x90 {
		return k.Length, b[0] != 0xf3
	}
	return k.Length, k.Opcode[0] == 0x0f && k.Opcode[1] == 0x1f
}
