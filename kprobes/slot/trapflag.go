package slot

import (
	"encoding/binary"

	"kprobelab/decoder"
	"kprobelab/profile"
	"kprobelab/x86"
)

// fixup is the set of corrections that are needed after a step in the slot.
type fixup uint8

const (
	// fixIP moves ip back to the original instruction's neighbourhood.
	fixIP fixup = 1 << iota
	// fixReturn moves the return address that a call pushed.
	fixReturn
	// fixFlags removes the step's TF and IF from the word that pushf pushed.
	fixFlags
	// fixBoosted: nothing has to be put right, so the slot counts as boosted
	// from now on, with no jump after the copy.
	fixBoosted
)

// fixups has a row for every opcode that is not simply moved back (resume_execution;
// docs/spec 2.8). A row holds where ModRM masked by mask has the value; all rows
// without ModRM have mask 0.
var fixups = []struct {
	opcode, mask, value byte
	fix                 fixup
}{
	{0x9C, 0, 0, fixFlags | fixIP},  // pushf
	{0xC2, 0, 0, fixBoosted},        // ret imm16
	{0xC3, 0, 0, fixBoosted},        // ret
	{0xCA, 0, 0, fixBoosted},        // retf imm16
	{0xCB, 0, 0, fixBoosted},        // retf
	{0xCF, 0, 0, fixBoosted},        // iret
	{0xEA, 0, 0, fixBoosted},        // far jmp
	{0xE8, 0, 0, fixReturn | fixIP}, // call
	{0x9A, 0, 0, fixReturn},         // far call, 32-bit kernels
	{0xFF, 0x30, 0x10, fixReturn},   // call *, near and far
	{0xFF, 0x31, 0x20, fixBoosted},  // jmp *, near and far: the two
	{0xFF, 0x31, 0x21, fixBoosted},  // masks accept every operand
}

// setFixup finds the slot's row. The opcode is looked for in the raw bytes, so
// a VEX prefix is an opcode here.
func (s *Slot) setFixup(c *profile.Config) {
	b := s.Bytes[:s.InsnLen]
	i := rawOpcode(b, c.Step.FixupSkipsREXOnly)
	b = append(b[i:len(b):len(b)], 0) // ModRM of the last byte reads as zero
	s.fixup = fixIP
	for _, r := range fixups {
		if b[0] == r.opcode && b[1]&r.mask == r.value && !unread(b, c) {
			s.fixup = r.fix
		}
	}
	switch b[0] {
	case 0xFA, 0xFB, 0xCF, 0x9D:
		s.ModifiesIF = true
	}
}

// unread reports whether the kernel ignores the ModRM byte of an FF.
func unread(b []byte, c *profile.Config) bool {
	return b[0] == 0xFF && (c.Step.GroupUnread || c.Step.FarJumpUnseen && b[1]>>3&7 == 5)
}

// rawOpcode is the offset of the first byte that is no prefix: skipping all
// legacy prefixes and then a REX, or in 2.6.18 one REX only.
func rawOpcode(b []byte, rexOnly bool) int {
	i := 0
	for !rexOnly && i < len(b)-1 && decoder.IsLegacyPrefix(b[i]) {
		i++
	}
	if i < len(b)-1 && b[i]&0xF0 == 0x40 {
		i++
	}
	return i
}

// FixupTF puts regs and the stack right after the copy was stepped with the
// trap flag, as if the original had run (resume_execution; docs/spec 2.8): it
// clears TF, moves ip and a pushed return address by At - Addr, and gives
// pushed flags the TF and IF of oldFlags, which the int3 found.
//
// Kernels with profile.Slot.LazyBoost append the jump back now, where ip is
// right past the copy; then rewrite is true and the slot has to be written
// again. The error is Memory's.
func (s *Slot) FixupTF(regs *x86.PtRegs, m Memory, oldFlags uint64, c *profile.Config) (rewrite bool, err error) {
	regs.Flags &^= x86.FlagTF
	moved := uint64(s.At.Sub(s.Addr))
	if s.fixup&fixFlags != 0 {
		err = s.editTop(regs, m, func(v uint64) uint64 {
			const step = x86.FlagTF | x86.FlagIF
			return v&^step | oldFlags&step
		})
	}
	if s.fixup&fixReturn != 0 {
		err = s.editTop(regs, m, func(v uint64) uint64 { return v + moved })
	}
	if s.fixup&fixBoosted != 0 && c.Slot.BoostRule != profile.BoostNever {
		s.Boosted = true
	}
	if s.fixup&fixIP == 0 {
		return false, err
	}
	rewrite = s.lazy && s.boostLazily(regs)
	regs.IP += moved
	return rewrite, err
}

// boostLazily appends the jump if the step ended right past the copy and
// there is room.
func (s *Slot) boostLazily(regs *x86.PtRegs) bool {
	end := s.Addr.Add(int64(s.InsnLen))
	if s.Boosted || x86.Addr(regs.IP) != end || s.InsnLen+x86.Rel32Size >= decoder.MaxInsnSize {
		return false
	}
	s.appendJump()
	return true
}

// editTop changes the word on top of the stack.
func (s *Slot) editTop(regs *x86.PtRegs, m Memory, edit func(uint64) uint64) error {
	b := s.Emulation.stack[:]
	if err := m.ReadMem(x86.Addr(regs.SP), b); err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(b, edit(binary.LittleEndian.Uint64(b)))
	return m.WriteMem(x86.Addr(regs.SP), b)
}
