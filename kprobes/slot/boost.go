package slot

import (
	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Boostable reports whether a jump back may follow a copy of the instruction, which also decides
// whether it may be copied into a detour buffer (can_boost; docs/spec 3.4, 3.5). at is the original
// address: an instruction in the exception table must fault at that address.
//
// The length limit, PREEMPTION and post_handler are not part of the rule.
func Boostable(v kimage.View, k *decoder.Kernel, at x86.Addr, c *profile.Config) bool {
	if c.Slot.BoostRule == profile.BoostNever {
		return false
	}
	if _, ok := v.ExceptionEntry(at); ok {
		return false
	}
	if k.VexLen != 0 && !c.Step.VexAsLegacy && c.Slot.Emulate {
		// The kernel has rules for legacy opcodes only, for which it takes
		// these. Where it is to tell them apart, none is boostable.
		return false
	}
	if t := &c.Slot.BoostTable; t.Known {
		return boostableByTable(k, t)
	}
	switch c.Slot.BoostRule {
	case profile.Boost44:
		return boostable44(v, at)
	case profile.Boost58:
		return boostableByLength(k, func() bool { return boost58.has(k.Opcode[0]) })
	case profile.Boost54:
		return boostableByLength(k, func() bool { return !stopped(k) && boost58.has(k.Opcode[0]) })
	case profile.Boost612:
		return boostableByLength(k, func() bool { return boostableOne(k, boost612ByReg) })
	default:
		return boostableByLength(k, func() bool { return boostableOne(k, boost61ByReg) })
	}
}

// boostableByTable is the rule by the kernel's own answers.
func boostableByTable(k *decoder.Kernel, t *profile.BoostTable) bool {
	switch k.OpcodeLen {
	case 1:
		if k.HasPrefix(0x2E) && !t.CS || k.HasPrefix(0x67) && !t.AddrSize {
			return false
		}
		return t.One[k.Opcode[0]]>>k.Reg()&1 != 0
	case 2:
		return t.Has2(k.Opcode[1])
	}
	return false
}

// boostableByLength: two-byte opcodes have a table, three-byte ones (0F 38,
// 0F 3A) are never boostable, and one-byte opcodes have each release's rule.
func boostableByLength(k *decoder.Kernel, one func() bool) bool {
	switch k.OpcodeLen {
	case 1:
		return one()
	case 2:
		return boostTwoByte.has(k.Opcode[1])
	}
	return false
}

// boostableOne is the rule of 5.13 and later for one-byte opcodes. byReg says
// for some opcodes which values of ModRM.reg are boostable, a bit each.
func boostableOne(k *decoder.Kernel, byReg map[byte]byte) bool {
	if stopped(k) {
		return false
	}
	op := k.Opcode[0]
	if regs, ok := byReg[op]; ok {
		return regs>>k.Reg()&1 != 0
	}
	return !boost61Never.has(op)
}

// stopped: a prefix forbids the boost.
func stopped(k *decoder.Kernel) bool { return k.HasPrefix(0x2E) || k.HasPrefix(0x67) }

// boostable44 walks the raw bytes, as 4.4 did, which had the rule before it
// had a decoder here: 67, 62 and 2E stop with "no".
func boostable44(v kimage.View, at x86.Addr) bool {
	b := make([]byte, decoder.MaxInsnSize)
	b = b[:v.CodeAt(at, b)]
	for i, op := range b {
		switch {
		case op == 0x0F:
			return i+1 < len(b) && boostTwoByte.has(b[i+1])
		case boost44Skipped.has(op):
			continue
		}
		return op != 0x67 && boost58.has(op)
	}
	return false
}
