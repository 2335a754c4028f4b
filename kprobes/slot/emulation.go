package slot

import (
	"kprobelab/decoder"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Kind names the routine that emulates an instruction.
type Kind uint8

// The routines, one for each function of the kernel.
const (
	// EmulateNone: the copy is stepped.
	EmulateNone Kind = iota
	// EmulateIfModifiers is cli, sti, pushf and popf.
	EmulateIfModifiers
	// EmulateRet is ret and retf, which it takes for ret.
	EmulateRet
	// EmulateCall is call rel.
	EmulateCall
	// EmulateJmp is jmp rel.
	EmulateJmp
	// EmulateJcc is a conditional jump.
	EmulateJcc
	// EmulateLoop is loop, loope, loopne and jcxz.
	EmulateLoop
	// EmulateCallIndirect is call *reg.
	EmulateCallIndirect
	// EmulateJmpIndirect is jmp *reg.
	EmulateJmpIndirect
)

var kindNames = [...]string{
	EmulateNone: "", EmulateIfModifiers: "kprobe_emulate_ifmodifiers",
	EmulateRet: "kprobe_emulate_ret", EmulateCall: "kprobe_emulate_call",
	EmulateJmp: "kprobe_emulate_jmp", EmulateJcc: "kprobe_emulate_jcc",
	EmulateLoop:         "kprobe_emulate_loop",
	EmulateCallIndirect: "kprobe_emulate_call_indirect",
	EmulateJmpIndirect:  "kprobe_emulate_jmp_indirect",
}

// Emulation is the routine that emulates one instruction, with its operands (struct
// arch_specific_insn, the part after emulate_op). It belongs to one CPU at a time.
type Emulation struct {
	Kind Kind
	// Type is the condition of a jcc (0-15), the kind of loop (opcode & 3),
	// the register's number, or the opcode of a flag instruction.
	Type byte
	// AddrSize is the counter's width of a loop in bits, 64 or 32, else 0.
	AddrSize byte
	// Rel32 is the branch's displacement.
	Rel32 int32
	// Len is the length of the instruction in bytes.
	Len int
	// RetImm is the number of bytes that a processor adds to rsp for ret imm16.
	RetImm uint16
	// OpSize is the number of bytes that a processor moves for flags, or for each word of a far
	// return, if the kernel moves another number; else 0.
	OpSize byte
	// Far is a far return.
	Far bool

	// stack carries one word to and from memory: a buffer on Go's stack
	// would be allocated for every hit.
	stack [8]byte
}

// String is the name of the kernel's routine, "" for a stepped instruction.
func (e Emulation) String() string { return kindNames[e.Kind] }

// classify decides whether and how the instruction is emulated
// (prepare_emulation; docs/spec 2.7). The error is an *Error with EOPNOTSUPP.
func classify(k *decoder.Kernel, at x86.Addr, c *profile.Config) (Emulation, error) {
	if k.VexLen != 0 && !c.Step.VexAsLegacy {
		return Emulation{}, nil
	}
	e := Emulation{Len: k.Length}
	refused := e.classify(k)
	if refused != rule.None {
		return Emulation{}, refuse(refused, at)
	}
	if e.Kind == EmulateNone {
		return Emulation{}, nil
	}
	return e, nil
}

// classify fills in e by opcode, or returns the rule that refuses it.
func (e *Emulation) classify(k *decoder.Kernel) rule.ID {
	switch op := k.Opcode[0]; {
	case op == 0xFA, op == 0xFB, op == 0x9C, op == 0x9D:
		e.Kind, e.Type = EmulateIfModifiers, op
		if k.HasPrefix(0x66) && k.REX&8 == 0 {
			e.OpSize = 2
		}
	case op == 0xC2, op == 0xC3, op == 0xCA, op == 0xCB:
		e.Kind, e.RetImm = EmulateRet, uint16(k.Imm)
		e.Far, e.OpSize = op >= 0xCA, byte(k.OpSize)
	case op == 0x9A, op == 0xCC, op == 0xCF, op == 0xEA:
		return rule.FarBranch
	case op == 0xE8:
		e.Kind, e.Rel32 = EmulateCall, int32(k.Imm)
	case op == 0xE9, op == 0xEB:
		e.Kind, e.Rel32 = EmulateJmp, int32(k.Imm)
	case op&0xF0 == 0x70:
		e.Kind, e.Type, e.Rel32 = EmulateJcc, op&0xF, int32(k.Imm)
	case op >= 0xE0 && op <= 0xE3:
		e.Kind, e.Type, e.Rel32 = EmulateLoop, op&3, int32(k.Imm)
		e.AddrSize = byte(k.AddrSize * 8)
	case op == 0x0F:
		return e.classifyTwoByte(k)
	case op == 0xFF:
		return e.classifyIndirect(k)
	}
	return rule.None
}

func (e *Emulation) classifyTwoByte(k *decoder.Kernel) rule.ID {
	switch op := k.Opcode[1]; {
	case op&0xF0 == 0x80:
		e.Kind, e.Type, e.Rel32 = EmulateJcc, op&0xF, int32(k.Imm)
	case op == 0x01 && k.Reg() == 0 && k.Mod() == 3:
		return rule.VMCall
	}
	return rule.None
}

// classifyIndirect is opcode FF: only calls and jumps to a register are
// emulated.
func (e *Emulation) classifyIndirect(k *decoder.Kernel) rule.ID {
	switch k.Reg() {
	case 2:
		e.Kind = EmulateCallIndirect
	case 4:
		e.Kind = EmulateJmpIndirect
	case 3, 5:
		return rule.FarBranch
	default:
		return rule.None
	}
	if k.Mod() != 3 || k.AddrSize != 8 {
		return rule.BranchMemory
	}
	e.Type = byte(k.RM())
	return rule.None
}
