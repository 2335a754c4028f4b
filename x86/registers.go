package x86

import "unsafe"

// frame are the words of a struct pt_regs, by the names that the kernel gives them
// (regoffset_table[]); they are 8 bytes each.
var frame = [PtRegsSize / 8]string{
	"r15", "r14", "r13", "r12", "bp", "bx", "r11", "r10", "r9", "r8", "ax", "cx", "dx", "si", "di",
	"orig_ax", "ip", "cs", "flags", "sp", "ss",
}

// RegOffset returns the offset in bytes in struct pt_regs of the register of that name, such as di
// or orig_ax.
func RegOffset(name string) (off int, ok bool) {
	for i, n := range frame {
		if n == name {
			return 8 * i, true
		}
	}
	return 0, false
}

// RegName names the word at a byte offset of struct pt_regs.
func RegName(off int64) (name string, ok bool) {
	if off < 0 || off >= PtRegsSize || off%8 != 0 {
		return "", false
	}
	return frame[off/8], true
}

// The registers of parameters, in order: of a function (System V ABI), and of a
// system call, where the fourth is r10.
var (
	Params     = [RegArgs]string{"di", "si", "dx", "cx", "r8", "r9"}
	CallParams = [RegArgs]string{"di", "si", "dx", "r10", "r8", "r9"}
)

// DWARF are the registers by their numbers in DWARF (System V ABI, x86-64 supplement,
// "DWARF Register Number Mapping"); the last is the return address column.
var DWARF = [...]string{
	"ax", "dx", "cx", "bx", "si", "di", "bp", "sp", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "ip",
}

// DWARFNumber is a register's number in DWARF.
func DWARFNumber(name string) (n int, ok bool) {
	for i, r := range DWARF {
		if r == name {
			return i, true
		}
	}
	return 0, false
}

// Words are the frame's words.
func (r *PtRegs) Words() *[PtRegsSize / 8]uint64 {
	return (*[PtRegsSize / 8]uint64)(unsafe.Pointer(r))
}

// At is the register at a byte offset of struct pt_regs.
func (r *PtRegs) At(off int) uint64 { return r.Words()[off/8] }

// Named returns the register of that name; nil if there is none.
func (r *PtRegs) Named(name string) *uint64 {
	off, ok := RegOffset(name)
	if !ok {
		return nil
	}
	return &r.Words()[off/8]
}
