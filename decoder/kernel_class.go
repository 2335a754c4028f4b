package decoder

import "kprobelab/x86"

// The properties of a decoded instruction that kprobes checks.

// HasPrefix reports whether b is one of the distinct legacy prefixes.
func (k *Kernel) HasPrefix(b byte) bool {
	for _, p := range k.Prefixes {
		if p == b && p != 0 {
			return true
		}
	}
	return false
}

// RIPRelative reports whether the memory operand is relative to the next
// instruction (insn_rip_relative). The address size is not looked at, so an
// EIP-relative operand counts too.
func (k *Kernel) RIPRelative() bool {
	return k.HasModRM && k.ModRM&0xC7 == 0x05
}

// MasksExceptions reports whether the instruction holds exceptions back for
// one instruction: pop ss and mov ss (insn_masks_exceptions). The opcode is
// tested as the kernel does it: 1F, which is pop ds, for pop ss.
func (k *Kernel) MasksExceptions() bool {
	return k.Opcode[0] == 0x1F || k.Opcode[0] == 0x8E && k.Reg() == 2
}

// Reg is ModRM.reg, without REX's bit.
func (k *Kernel) Reg() byte { return k.ModRM >> 3 & 7 }

// Mod is ModRM.mod.
func (k *Kernel) Mod() byte { return k.ModRM >> 6 }

// RM is the register number of ModRM.rm with REX.B, 0 to 15. The kernel also reads bit B from the
// first byte of a REX2 prefix, where it is always set.
func (k *Kernel) RM() int { return int(k.ModRM&7) | int(k.REX&1)<<3 }

// IsRelativeJump reports whether the optimizer classifies the instruction as a relative jump:
// E0-E3, E9, EB, 70-7F, 0F 80-8F by opcode bytes alone, so VEX opcodes of those values count too
// (docs/spec 4.3, "Quirk"). Calls do not.
func (k *Kernel) IsRelativeJump() bool {
	switch op := k.Opcode[0]; {
	case op >= 0xE0 && op <= 0xE3, op == 0xE9, op == 0xEB, op&0xF0 == 0x70:
		return true
	case op == 0x0F:
		return k.Opcode[1]&0xF0 == 0x80
	}
	return false
}

// IsIndirectJump reports whether the optimizer classifies the instruction as an indirect jump: FF
// with ModRM.reg 4 or 5, or EA (docs/spec 4.3), by the first opcode byte alone.
func (k *Kernel) IsIndirectJump() bool {
	return k.Opcode[0] == 0xFF && k.Reg()&6 == 4 || k.Opcode[0] == 0xEA
}

// Target returns the destination of a relative branch at that address: the end of the instruction
// plus its immediate.
func (k *Kernel) Target(at x86.Addr) x86.Addr {
	return at.Add(int64(k.Length) + k.Imm)
}

// Class returns the class that kprobes derives from the opcode bytes. Its rules do not distinguish
// system calls, far branches and far returns from plain instructions: they are ClassNone.
func (k *Kernel) Class() Class {
	switch k.kind() {
	case KindCall:
		return ClassCall
	case KindIndirectCall:
		return ClassIndirectCall
	case KindReturn:
		return ClassRet
	case KindIndirectJump:
		return ClassIndirectJmp
	case KindInt3:
		return ClassInt
	case KindTrap:
		if k.Opcode[0] == 0x0F {
			return ClassUndefined
		}
		return ClassInt
	case KindJump:
		switch op := k.Opcode[0]; {
		case op == 0xE9, op == 0xEB:
			return ClassJmp
		case op&0xFC == 0xE0:
			return ClassLoop
		}
		return ClassJcc
	}
	return ClassNone
}

// HasTarget reports whether Target is the target of a call or jump.
func (k *Kernel) HasTarget() bool {
	kind := k.kind()
	return kind == KindCall || kind == KindJump
}
