package kimage

import (
	"errors"

	"kprobelab/x86"
)

// rela is one ELF relocation with addend.
type rela struct {
	off    uint64
	typ    uint32
	sym    uint32
	addend int64
}

func readRela(b []byte) rela {
	info := le.Uint64(b[8:])
	return rela{off: le.Uint64(b), typ: uint32(info), sym: uint32(info >> 32), addend: int64(le.Uint64(b[16:]))}
}

// Relocation types (System V ABI, AMD64 supplement, "Relocation Types").
const (
	rNone         = 0
	r64           = 1
	rPC32         = 2
	rPLT32        = 4
	rGlobDat      = 6
	rJumpSlot     = 7
	rRelative     = 8
	rGotPCRel     = 9
	r32           = 10
	r32S          = 11
	rPC64         = 24
	rGotPCRelX    = 41
	rRexGotPCRelX = 42
)

var (
	errRelocPlace = errors.New("the place lies outside the section")
	errRelocRange = errors.New("the value does not fit")
)

// apply writes the relocation into the target, for a symbol at addr. It returns false
// if the type needs data that only a linker makes.
func (r rela) apply(target *Section, addr x86.Addr) (bool, error) {
	size := uint64(4)
	if r.typ == r64 || r.typ == rPC64 {
		size = 8
	}
	if r.typ == rNone {
		return true, nil
	}
	if n := uint64(len(target.Data)); r.off > n || size > n-r.off {
		return false, errRelocPlace
	}
	place := target.Data[r.off:]
	value := uint64(addr) + uint64(r.addend)
	here := uint64(target.Addr) + r.off
	switch r.typ {
	case r64:
		le.PutUint64(place, value)
	case rPC64:
		le.PutUint64(place, value-here)
	case r32:
		if value>>32 != 0 {
			return false, errRelocRange
		}
		le.PutUint32(place, uint32(value))
	case r32S:
		return true, put32(place, value)
	case rPC32, rPLT32:
		return true, put32(place, value-here)
	case rGotPCRel, rGotPCRelX, rRexGotPCRelX:
		if r.off < 2 || !relaxGot(target.Data[r.off-2:]) {
			return false, nil
		}
		return true, put32(place, value-here)
	default:
		return false, nil
	}
	return true, nil
}

// relaxGot turns an instruction that goes through the global offset table into
// one that names the address itself, as a linker does (AMD64 supplement,
// "Optimize GOTPCRELX Relocations"): mov becomes lea; an indirect call becomes
// a direct one, with a prefix that fills the sixth byte.
func relaxGot(insn []byte) bool {
	switch {
	case insn[0] == 0x8b:
		insn[0] = 0x8d
	case insn[0] == 0xff && insn[1] == 0x15:
		insn[0], insn[1] = 0x67, 0xe8
	default:
		return false
	}
	return true
}

// put32 writes a value that a signed 32-bit field must hold.
func put32(b []byte, v uint64) error {
	if int64(v) != int64(int32(v)) {
		return errRelocRange
	}
	le.PutUint32(b, uint32(v))
	return nil
}

// patchOut replaces what a kernel's build or boot takes out of an object: the
// call of the function tracer at a function's entry becomes a no-operation of
// the same length, and the jump to the return thunk becomes a return.
func patchOut(text []byte, r rela, symbol string) bool {
	if n := uint64(len(text)); r.off < 1 || r.off > n || n-r.off < 4 {
		return false
	}
	insn := text[r.off-1 : r.off+4]
	switch {
	case symbol == "__fentry__" && insn[0] == 0xe8:
		copy(insn, []byte{0x0f, 0x1f, 0x44, 0x00, 0x00})
	case symbol == "__fentry__" && insn[0] == 0x15 && r.off >= 2 && text[r.off-2] == 0xff:
		copy(text[r.off-2:], []byte{0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00})
	case symbol == "__x86_return_thunk" && insn[0] == 0xe9:
		copy(insn, []byte{0xc3, 0xcc, 0xcc, 0xcc, 0xcc})
	default:
		return false
	}
	return true
}
