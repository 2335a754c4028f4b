package decoder

import (
	"fmt"

	"kprobelab/x86"
)

// Reading describes an instruction for the rules of jump optimization and of instruction
// boundaries. The zero Reading means that there is no instruction.
type Reading struct {
	// Length in bytes, 0 for no instruction.
	Length int
	Kind   Kind
	// Target is the destination of a KindCall or a KindJump; else 0.
	Target x86.Addr
}

// Kind classifies an instruction for the rules.
type Kind uint8

// The kinds.
const (
	// KindNone is no instruction.
	KindNone Kind = iota
	// KindPlain is an instruction that no rule treats specially.
	KindPlain
	// KindCall is a near relative call, KindIndirectCall one through a register
	// or memory.
	KindCall
	KindIndirectCall
	// KindReturn is a near return.
	KindReturn
	// KindJump is a relative jump, conditional or not; loop and jrcxz are, too.
	KindJump
	// KindIndirectJump is a jump through a register or memory, near or far.
	KindIndirectJump
	// KindInt3 is the byte CC.
	KindInt3
	// KindTrap only raises an exception: int n, int1, ud0, ud1, ud2.
	KindTrap
	// KindPanic is no instruction either: the decoder has panicked.
	KindPanic
)

var kindNames = [...]string{
	"no instruction", "no branch", "a call", "an indirect call", "a return", "a jump", "an indirect jump", "an int3", "a trap", "a panic",
}

// String is the kind in words.
func (k Kind) String() string { return kindNames[k] }

// String is such as "5 bytes, a jump to 0xffffffff81000010".
func (r Reading) String() string {
	if r.Length == 0 {
		return r.Kind.String()
	}
	s := fmt.Sprintf("%d bytes, %s", r.Length, r.Kind)
	if r.Length == 1 {
		s = "1 byte, " + r.Kind.String()
	}
	if r.Target != 0 {
		s += fmt.Sprintf(" to %v", r.Target)
	}
	return s
}

// A Reader reads the instruction at the start of b, which stands at that
// address. It looks at no more than 15 bytes. It is safe for concurrent use.
type Reader interface {
	Read(b []byte, at x86.Addr) Reading
	// String names it for people.
	String() string
}

// Tables is the Reader that the tables of opcodes/ make. It is the fast one.
type Tables struct{}

// String is "tables".
func (Tables) String() string { return "tables" }

// Read decodes by the tables.
func (Tables) Read(b []byte, at x86.Addr) Reading {
	d := procDecoder{b: b[:min(len(b), MaxInsnSize)]}
	if d.decode() != nil {
		return Reading{}
	}
	return d.i.reading(at)
}

// reading is the instruction as a Reader gives it.
func (i *Inst) reading(at x86.Addr) Reading {
	r := Reading{Length: i.Length, Kind: classKinds[i.Class]}
	switch r.Kind {
	case KindCall, KindJump:
		r.Target, _ = i.Target(at)
	case KindTrap:
		if i.Opcode == x86.Int3 && i.Encoding == EncPrimary {
			r.Kind = KindInt3
		}
	case KindPlain:
		if i.Class == ClassFar && i.Opcode == 0xFF && i.ModRM>>3&7 == 5 {
			r.Kind = KindIndirectJump // the others are calls and returns
		}
	}
	return r
}

var classKinds = [...]Kind{
	ClassNone: KindPlain, ClassCall: KindCall, ClassIndirectCall: KindIndirectCall, ClassRet: KindReturn,
	ClassJmp: KindJump, ClassJcc: KindJump, ClassLoop: KindJump, ClassIndirectJmp: KindIndirectJump,
	ClassInt: KindTrap, ClassSyscall: KindPlain, ClassFar: KindPlain, ClassUndefined: KindTrap,
}

// Reading is the kernel decoder's view in the words of a Reader: it goes by
// the opcode bytes that kprobes and the optimizer look at. What follows VEX or
// EVEX counts as an opcode of its own (docs/spec 4.3, "Quirk").
func (k *Kernel) Reading(at x86.Addr) Reading {
	r := Reading{Length: k.Length, Kind: k.kind()}
	if r.Kind == KindCall || r.Kind == KindJump {
		r.Target = k.Target(at)
	}
	return r
}

func (k *Kernel) kind() Kind {
	switch op := k.Opcode[0]; {
	case op == x86.Int3:
		return KindInt3
	case k.IsRelativeJump():
		return KindJump
	case k.IsIndirectJump():
		return KindIndirectJump
	case k.raisesException():
		return KindTrap
	case k.VexLen != 0:
	case op == 0xE8:
		return KindCall
	case op == 0xFF && k.Reg() == 2:
		return KindIndirectCall
	case op == 0xC3, op == 0xC2:
		return KindReturn
	}
	return KindPlain
}

// raisesException is is_exception_insn of 6.12. The traps of Clang's checks of indirect calls are the image's
// (Check.CFITraps).
func (k *Kernel) raisesException() bool {
	switch k.Opcode[0] {
	case 0xcc, 0xcd, 0xce, 0xf1: // int3, int n, into, int1
		return true
	case 0x0f:
		op := k.Opcode[1]
		return op == 0xff || op == 0xb9 || op == 0x0b // ud0, ud1, ud2
	}
	return false
}
