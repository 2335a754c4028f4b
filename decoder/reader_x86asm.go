package decoder

import (
	"golang.org/x/arch/x86/x86asm"

	"kprobelab/x86"
)

// X86asm is the Reader that golang.org/x/arch/x86/x86asm makes. Where it is
// known to be wrong, the tables of opcodes/ answer in its place: in the rows
// that Overrides lists, and for two uses of prefixes that x86asm refuses and
// processors do not, a REX that another prefix follows, and any prefix before
// VEX, EVEX or XOP.
type X86asm struct {
	// Bare leaves the corrections out. What x86asm takes for a prefix that
	// stands alone is then an instruction of one byte.
	Bare bool
}

// String is "x86asm" or "bare x86asm".
func (x X86asm) String() string {
	if x.Bare {
		return "bare x86asm"
	}
	return "x86asm"
}

// decodeX86asm is x86asm.Decode; a test replaces it by a function that panics.
var decodeX86asm = x86asm.Decode

// Read returns x86asm's reading, or the tables' where x86asm is known to be wrong. If x86asm
// panics, as some releases do on truncated bytes, the Reading has KindPanic.
func (x X86asm) Read(b []byte, at x86.Addr) (r Reading) {
	if !x.Bare {
		d := procDecoder{b: b[:min(len(b), MaxInsnSize)], overrides: true}
		switch err := d.decode(); err {
		case nil:
			return d.i.reading(at)
		case ErrUnknown: // no override is for these bytes
		default:
			return Reading{}
		}
	}
	defer func() {
		if recover() != nil {
			r = Reading{Kind: KindPanic}
		}
	}()
	asm, err := decodeX86asm(b, 64)
	if err != nil || asm.Op == 0 && !x.Bare {
		return Reading{}
	}
	return readingOf(&asm, at)
}

// x86asmKind is the kind of x86asm's branches and traps, KindNone for the
// conditional jumps and whatever else.
func x86asmKind(op x86asm.Op) Kind {
	switch op {
	case x86asm.CALL:
		return KindIndirectCall
	case x86asm.RET:
		return KindReturn
	case x86asm.JMP, x86asm.LJMP:
		return KindIndirectJump
	case x86asm.INT, x86asm.ICEBP, x86asm.UD0, x86asm.UD1, x86asm.UD2:
		return KindTrap
	case x86asm.XBEGIN:
		return KindPlain
	}
	return KindNone
}

// readingOf is x86asm's instruction as a Reader gives it.
func readingOf(asm *x86asm.Inst, at x86.Addr) Reading {
	r := Reading{Length: asm.Len, Kind: x86asmKind(asm.Op)}
	rel, relative := asm.Args[0].(x86asm.Rel)
	switch {
	case r.Kind == KindIndirectCall && relative:
		r.Kind = KindCall
	case r.Kind == KindIndirectJump && relative, r.Kind == KindNone && relative:
		r.Kind = KindJump
	case r.Kind == KindNone:
		r.Kind = KindPlain
	case asm.Op == x86asm.INT && asm.Opcode>>24 == x86.Int3:
		r.Kind = KindInt3
	}
	if r.Kind == KindCall || r.Kind == KindJump {
		r.Target = at.Add(int64(asm.Len) + int64(rel))
	}
	return r
}
