package source

import (
	"debug/dwarf"
	"encoding/binary"

	"kprobelab/internal/bounded"
)

// Operations of DWARF's expressions.
const (
	opAddr           = 0x03
	opDeref          = 0x06
	opConst1u        = 0x08
	opConst8s        = 0x0f
	opConstu         = 0x10
	opConsts         = 0x11
	opDup            = 0x12
	opDrop           = 0x13
	opOver           = 0x14
	opPick           = 0x15
	opSwap           = 0x16
	opRot            = 0x17
	opAnd            = 0x1a
	opDiv            = 0x1b
	opMinus          = 0x1c
	opMod            = 0x1d
	opMul            = 0x1e
	opNeg            = 0x1f
	opNot            = 0x20
	opOr             = 0x21
	opPlus           = 0x22
	opPlusUconst     = 0x23
	opShl            = 0x24
	opShr            = 0x25
	opShra           = 0x26
	opXor            = 0x27
	opBra            = 0x28
	opEq             = 0x29
	opGe             = 0x2a
	opGt             = 0x2b
	opLe             = 0x2c
	opLt             = 0x2d
	opNe             = 0x2e
	opSkip           = 0x2f
	opLit0           = 0x30
	opReg0           = 0x50
	opBreg0          = 0x70
	opRegx           = 0x90
	opFbreg          = 0x91
	opBregx          = 0x92
	opPiece          = 0x93
	opDerefSize      = 0x94
	opXderefSize     = 0x95
	opNop            = 0x96
	opCall2          = 0x98
	opCall4          = 0x99
	opCallRef        = 0x9a
	opCallFrameCFA   = 0x9c
	opBitPiece       = 0x9d
	opImplicitValue  = 0x9e
	opStackValue     = 0x9f
	opImplicitPtr    = 0xa0
	opAddrx          = 0xa1
	opConstx         = 0xa2
	opEntryValue     = 0xa3
	opConstType      = 0xa4
	opRegvalType     = 0xa5
	opDerefType      = 0xa6
	opConvert        = 0xa8
	opReinterpret    = 0xa9
	opGNUImplicit    = 0xf2
	opGNUEntryValue  = 0xf3
	opGNUConstType   = 0xf4
	opGNURegvalType  = 0xf5
	opGNUDerefType   = 0xf6
	opGNUConvert     = 0xf7
	opGNUReinterpret = 0xf9
)

// op is an operation with its operands.
type op struct {
	code byte
	a, b int64
	data []byte
}

// ops reads an expression. ok is false if it has an unknown operation.
func (f *File) ops(h *header, raw []byte) (out []op, ok bool) {
	c := cursor{b: raw}
	for c.at < uint64(len(raw)) {
		o := op{code: c.u8()}
		switch k := o.code; {
		case k == opAddr:
			o.a = int64(c.u64())
		case k >= opConst1u && k <= opConst8s:
			size := uint64(1) << ((k - opConst1u) / 2)
			o.a = fixed(c.take(size), (k-opConst1u)%2 == 1)
		case k == opConstu, k == opPlusUconst, k == opRegx, k == opPiece, k == opConvert, k == opReinterpret, k == opGNUConvert, k == opGNUReinterpret:
			o.a = int64(c.uleb())
		case k == opAddrx:
			o.code, o.a = opAddr, int64(f.indexedAddr(h, c.uleb()))
		case k == opConstx:
			o.code, o.a = opConstu, int64(f.indexedAddr(h, c.uleb()))
		case k == opConsts, k == opFbreg, k >= opBreg0 && k < opBreg0+32:
			o.a = c.sleb()
		case k == opBregx:
			o.a = int64(c.uleb())
			o.b = c.sleb()
		case k == opPick, k == opDerefSize, k == opXderefSize:
			o.a = int64(c.u8())
		case k == opSkip, k == opBra, k == opCall2:
			o.a = int64(int16(c.u16()))
		case k == opCall4:
			o.a = int64(c.u32())
		case k == opCallRef:
			o.a = int64(c.offset(h.wide))
		case k == opBitPiece, k == opRegvalType, k == opGNURegvalType:
			o.a, o.b = int64(c.uleb()), int64(c.uleb())
		case k == opImplicitValue, k == opEntryValue, k == opGNUEntryValue:
			o.data = c.take(c.uleb())
		case k == opImplicitPtr, k == opGNUImplicit:
			c.offset(h.wide)
			c.sleb()
		case k == opConstType, k == opGNUConstType:
			o.a = int64(c.uleb())
			o.data = c.take(uint64(c.u8()))
		case k == opDerefType, k == opGNUDerefType:
			o.a, o.b = int64(c.u8()), int64(c.uleb())
		case k >= opLit0 && k < opLit0+32:
			o.code, o.a = opConsts, int64(k-opLit0)
		case k >= opReg0 && k < opReg0+32, k == opStackValue, k == opCallFrameCFA, k == opDeref, k >= opDup && k <= opNe, k == opNop:
		default:
			return out, false
		}
		if c.bad || len(out) >= bounded.Operations {
			return out, false
		}
		out = append(out, o)
	}
	return out, true
}

func fixed(b []byte, signed bool) int64 {
	var v uint64
	for i, x := range b {
		v |= uint64(x) << (8 * i)
	}
	if bits := 8 * len(b); signed && bits < 64 {
		return int64(v<<(64-bits)) >> (64 - bits)
	}
	return int64(v)
}

// indexedAddr is an address of .debug_addr by its number.
func (f *File) indexedAddr(h *header, i uint64) uint64 {
	base := uint64(0)
	if r := f.root(h); r != nil {
		if v, ok := constant(r.Val(dwarf.AttrAddrBase)); ok {
			base = uint64(v)
		}
	}
	b := f.debug["debug_addr"]
	if at := base + i*8; i < uint64(len(b)) && at+8 <= uint64(len(b)) && at >= base {
		return binary.LittleEndian.Uint64(b[at:])
	}
	return 0
}

// root is a unit's first entry.
func (f *File) root(h *header) *dwarf.Entry {
	for _, u := range f.recent {
		if u.h == h {
			return u.root.Entry
		}
	}
	r := f.dwarf.Reader()
	r.Seek(dwarf.Offset(h.root))
	e, err := r.Next()
	if err != nil {
		return nil
	}
	return e
}
