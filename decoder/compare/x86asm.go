package compare

import (
	"golang.org/x/arch/x86/x86asm"

	"kprobelab/decoder"
)

// X86asm is golang.org/x/arch/x86/x86asm as a Decoder, without the corrections of
// package decoder.
type X86asm struct {
	// Text: answers have the instruction's text, in GNU syntax.
	Text bool
}

// Name is "x86asm".
func (X86asm) Name() string { return "x86asm" }

// Close does nothing.
func (X86asm) Close() error { return nil }

// Ask decodes. An Op of 0 without an error is a refusal. A panic is one, too:
// releases are known that panic.
func (x X86asm) Ask(questions [][]byte, answers []Answer) error {
	for n, q := range questions {
		answers[n] = askX86asm(q, x.Text)
	}
	return nil
}

func askX86asm(q []byte, text bool) (a Answer) {
	defer func() {
		if recover() != nil {
			a = Answer{}
		}
	}()
	i, err := x86asm.Decode(q, 64)
	if err != nil || i.Op == 0 || i.Len > len(q) {
		return a
	}
	a.Length = i.Len
	for _, arg := range i.Args {
		if rel, ok := arg.(x86asm.Rel); ok {
			a.HasTarget, a.Target = true, int64(i.Len)+int64(rel)
		}
	}
	a.Class = &classes[classOfX86asm(i.Op, a.HasTarget)]
	if text {
		a.Text = x86asm.GNUSyntax(i, 0, nil)
	}
	return a
}

// x86asmClasses are the classes of x86asm's Ops. An Op without a row is a conditional jump if it has a target,
// and otherwise an ordinary instruction.
var x86asmClasses = map[x86asm.Op]decoder.Class{
	x86asm.CALL: decoder.ClassIndirectCall, x86asm.JMP: decoder.ClassIndirectJmp, x86asm.RET: decoder.ClassRet,
	x86asm.LCALL: decoder.ClassFar, x86asm.LJMP: decoder.ClassFar, x86asm.LRET: decoder.ClassFar,
	x86asm.IRET: decoder.ClassFar, x86asm.IRETD: decoder.ClassFar, x86asm.IRETQ: decoder.ClassFar,
	x86asm.LOOP: decoder.ClassLoop, x86asm.LOOPE: decoder.ClassLoop, x86asm.LOOPNE: decoder.ClassLoop,
	x86asm.JCXZ: decoder.ClassLoop, x86asm.JECXZ: decoder.ClassLoop, x86asm.JRCXZ: decoder.ClassLoop,
	x86asm.INT: decoder.ClassInt, x86asm.ICEBP: decoder.ClassInt, x86asm.INTO: decoder.ClassInt,
	x86asm.SYSCALL: decoder.ClassSyscall, x86asm.SYSENTER: decoder.ClassSyscall,
	x86asm.SYSEXIT: decoder.ClassSyscall, x86asm.SYSRET: decoder.ClassSyscall,
	x86asm.UD0: decoder.ClassUndefined, x86asm.UD1: decoder.ClassUndefined, x86asm.UD2: decoder.ClassUndefined,
	x86asm.XBEGIN: decoder.ClassNone,
}

func classOfX86asm(op x86asm.Op, direct bool) decoder.Class {
	c, ok := x86asmClasses[op]
	switch {
	case c == decoder.ClassIndirectCall && direct:
		return decoder.ClassCall
	case c == decoder.ClassIndirectJmp && direct:
		return decoder.ClassJmp
	case !ok && direct:
		return decoder.ClassJcc
	}
	return c
}
