package machine

import (
	"sort"

	"kprobelab/kimage"
	"kprobelab/x86"
)

// Types of exception table entries and the fields of their word, from 5.17 on
// (arch/x86/include/asm/extable_fixup_types.h). Simplified: the other types
// only go to their fixup, which for MSR accesses and zero-padded loads leaves
// a register as it was.
const (
	exTypeMask = 0xff
	exRegShift = 8
	exClearAX  = 1 << 12
	exClearDX  = 2 << 12
	exImmShift = 16

	exFault      = 2  // ax := vector
	exFaultMCE   = 15 // the same
	exPopReg     = 16 // reg := imm, sp += 8
	exImmReg     = 17 // reg := imm
	exUCopyLen   = 19 // cx := reg + imm*cx
	exTypesKnown = 24
)

// exceptionTable holds the entries with the types of their fixups. It is nil before 5.17, where an
// entry had the address of a handler and no type.
type exceptionTable []kimage.ExceptionEntry

func exceptionTableOf(src Source) exceptionTable {
	s, ok := src.(interface {
		ExceptionTable() []kimage.ExceptionEntry
	})
	if !ok {
		return nil
	}
	list := s.ExceptionTable()
	for _, e := range list {
		if e.Data&exTypeMask > exTypesKnown {
			return nil // the address of a handler, not a type
		}
	}
	return list
}

func (t exceptionTable) data(addr x86.Addr) uint32 {
	i := sort.Search(len(t), func(i int) bool { return t[i].Addr >= addr })
	if i == len(t) || t[i].Addr != addr {
		return 0
	}
	return t[i].Data
}

// fixup looks for the instruction at regs.IP in the exception table and goes
// to its fixup (arch/x86/mm/extable.c, fixup_exception).
func (m *Machine) fixup(regs *x86.PtRegs, vector int) bool {
	at := x86.Addr(regs.IP)
	to, ok := m.src.ExceptionEntry(at)
	if !ok {
		return false
	}
	applyFixup(regs, m.extable.data(at), vector)
	regs.IP = uint64(to)
	return true
}

func applyFixup(regs *x86.PtRegs, data uint32, vector int) {
	imm := uint64(int64(int32(data) >> exImmShift))
	reg := regs.Reg(int(data >> exRegShift))
	if data&exClearAX != 0 {
		regs.AX = 0
	}
	if data&exClearDX != 0 {
		regs.DX = 0
	}
	switch data & exTypeMask {
	case exFault, exFaultMCE:
		regs.AX = uint64(vector)
	case exPopReg:
		regs.SP += 8
		*reg = imm
	case exImmReg:
		*reg = imm
	case exUCopyLen:
		regs.CX = *reg + imm*regs.CX
	}
}
