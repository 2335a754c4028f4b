package uprobes

import (
	"bytes"

	"kprobelab/decoder"
	"kprobelab/profile"
	"kprobelab/x86"
)

// nops are the kernel's own nops of 1 to 8 bytes (x86_nops).
var nops = [][]byte{
	{0x90}, {0x66, 0x90}, {0x0f, 0x1f, 0x00}, {0x0f, 0x1f, 0x40, 0}, {0x0f, 0x1f, 0x44, 0, 0}, {0x66, 0x0f, 0x1f, 0x44, 0, 0},
	{0x0f, 0x1f, 0x80, 0, 0, 0, 0}, {0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0},
}

// isNop reports whether the instruction is emulated as a nop.
func isNop(code []byte, k *decoder.Kernel, u *profile.Uprobes) bool {
	if u.DecodesNops {
		return decodedNop(k)
	}
	// To 6.18, 90 is a nop with whatever prefix: also pause, and xchg %r8,%rax.
	if k.Opcode[0] == 0x90 {
		return true
	}
	if u.KnowsNops {
		for _, n := range nops {
			if bytes.HasPrefix(code, n) {
				return true
			}
		}
	}
	return false
}

// decodedNop is insn_is_nop: nop and nopl of any form, mov of a register to itself, lea so
// and without a prefix, a jump to the next instruction.
func decodedNop(k *decoder.Kernel) bool {
	if k.VexLen > 0 {
		return false
	}
	r, x, b, high := k.REX>>2&1, k.REX>>1&1, k.REX&1, byte(0)
	wide := k.REX&8 != 0
	if k.REX == rex2 {
		r, x, b, high = k.REX2>>2&1, k.REX2>>1&1, k.REX2&1, k.REX2>>4&7
		wide = k.REX2&8 != 0
	}
	reg, rm := k.Reg()|r<<3|high>>2&1<<4, k.ModRM&7|b<<3|high&1<<4
	switch k.Opcode[0] {
	case 0x90:
		return b == 0 && high&1 == 0 && !k.HasPrefix(0xf3)
	case 0x89: // mov
		return wide && k.Mod() == 3 && reg == rm
	case 0x8d: // lea
		if !wide || k.Mod() == 0 || k.Mod() == 3 || k.Disp != 0 || k.LastPrefix != 0 {
			return false
		}
		if k.HasSIB {
			return k.SIB>>3&7|x<<3 == 4 && reg == k.SIB&7|b<<3|high&1<<4
		}
		return reg == rm
	case 0xe9, 0xeb:
		return k.Imm == 0
	case 0x0f:
		return k.OpcodeLen == 2 && k.Opcode[1] == 0x1f && reg == 0
	}
	return false
}

// nop10 is the beginning of the nop of ten bytes.
var nop10 = []byte{0x66, 0x2e, 0x0f, 0x1f, 0x84}

const pageSize = 4096

// canOptimize reports whether the instruction can become a call of the trampoline: a nop that
// is long enough, on one page.
func canOptimize(code []byte, k *decoder.Kernel, at x86.Addr, u *profile.Uprobes) bool {
	n := 0
	switch {
	case u.OptimizesNop10:
		if !bytes.HasPrefix(code, nop10) {
			return false
		}
		n = 10
	case u.OptimizesNop5:
		n = 5
		// 6.18 takes every 90 and 0f 1f /0 for a nop here, not only the nops that it emulates.
		plain := k.Opcode[0] == 0x90 || k.Opcode[0] == 0x0f && k.OpcodeLen == 2 && k.Opcode[1] == 0x1f && k.Reg() == 0
		if u.DecodesNops && !decodedNop(k) || !u.DecodesNops && !plain {
			return false
		}
	default:
		return false
	}
	return k.Length == n && uint64(at)%pageSize <= pageSize-uint64(n)
}
