package slot

import (
	"encoding/binary"

	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

// MaxBytes is the size of Slot.Bytes: a slot of the kernel has 15 bytes, and
// an instruction of 15 bytes is refused where an int3 must follow it.
const MaxBytes = 20

// Slot is an instruction out of line, as it is to be written to memory.
//
//	stepped   [copied instruction] cc
//	boosted   [copied instruction] e9 rel32 -> At + InsnLen
//	TF        [copied instruction] (e9 rel32, where boosted)
type Slot struct {
	// Addr is the slot's address, At the address of the original instruction.
	Addr, At x86.Addr
	// Bytes[:Len] are to be written at Addr (the kernel's tp_len).
	Bytes [MaxBytes]byte
	Len   int
	// InsnLen is the length of the instruction (ainsn.size).
	InsnLen int
	// Opcode is the first byte of the copy, which the int3 at At replaces.
	Opcode byte
	// Boosted: a jump back follows the copy (ainsn.boostable). Whether
	// a hit may use it is up to the hit path in kernels that decide then
	// (profile.Slot.BoostDecidedAtBuild false).
	Boosted bool
	// Emulation is the instruction's emulation; its Kind is EmulateNone if the instruction is
	// stepped. A boosted slot may have one too.
	Emulation Emulation
	// ModifiesIF: a trap-flag step must let the instruction's own IF stand
	// (is_IF_modifier; cli, sti, iret, popf).
	ModifiesIF bool

	fixup fixup
	// lazy: the jump is appended after the first step (LazyBoost).
	lazy bool
}

// Build makes the slot of the instruction at at, to be written at slotAddr (arch_copy_kprobe;
// docs/spec 3.3, and 2.8 for kernels that step with the trap flag). hasPostHandler is true if the
// probe has a post handler now.
//
// The error is an *Error: EINVAL where the instruction cannot be copied,
// EOPNOTSUPP where it can be neither stepped nor emulated, ENOSPC where no
// int3 fits after it.
func Build(v kimage.View, at, slotAddr x86.Addr, hasPostHandler bool, c *profile.Config) (Slot, error) {
	s := Slot{Addr: slotAddr, At: at}
	k, err := Copy(v, s.Bytes[:], at, slotAddr, c)
	if err != nil {
		return Slot{}, err
	}
	s.InsnLen, s.Len = k.Length, k.Length
	s.Opcode = s.Bytes[0]
	clear(s.Bytes[k.Length:])
	if c.Slot.Emulate {
		if s.Emulation, err = classify(&k, at, c); err != nil {
			return Slot{}, err
		}
	}
	if c.Step.TrapFlag {
		s.setFixup(c)
	}
	if err = s.finish(v, &k, hasPostHandler, c); err != nil {
		return Slot{}, err
	}
	return s, nil
}

// finish appends the jump back or the int3 that ends the step.
func (s *Slot) finish(v kimage.View, k *decoder.Kernel, hasPostHandler bool, c *profile.Config) error {
	boost := s.mayBoost(hasPostHandler, c) && Boostable(v, k, s.At, c)
	s.lazy = boost && c.Slot.LazyBoost
	switch {
	case boost && !s.lazy:
		s.appendJump()
	case c.Step.TrapFlag:
	case s.InsnLen >= decoder.MaxInsnSize:
		return refuse(rule.TooLong, s.At)
	default:
		s.Bytes[s.Len] = x86.Int3
		s.Len++
	}
	return nil
}

// mayBoost checks the conditions beyond the boost rule. Kernels that decide at the hit check
// PREEMPTION and the post_handler then.
func (s *Slot) mayBoost(hasPostHandler bool, c *profile.Config) bool {
	if s.InsnLen > decoder.MaxInsnSize-x86.Rel32Size {
		return false
	}
	return !c.Slot.BoostDecidedAtBuild || !c.Preemption && !hasPostHandler
}

// appendJump appends the jump to the instruction after the original.
func (s *Slot) appendJump() {
	back := s.At.Add(int64(s.InsnLen))
	from := s.Addr.Add(int64(s.Len + x86.Rel32Size))
	s.Bytes[s.Len] = x86.Jmp32
	binary.LittleEndian.PutUint32(s.Bytes[s.Len+1:], uint32(back.Sub(from)))
	s.Len += x86.Rel32Size
	s.Boosted = true
}
