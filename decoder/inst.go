package decoder

import (
	"fmt"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"kprobelab/errno"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Class is what an instruction does to control flow.
type Class uint8

// The classes.
const (
	// ClassNone goes on to the next instruction.
	ClassNone Class = iota
	// ClassCall is a near relative call.
	ClassCall
	// ClassIndirectCall is a near call through a register or memory.
	ClassIndirectCall
	// ClassRet is a near return.
	ClassRet
	// ClassJmp is a near relative jump.
	ClassJmp
	// ClassIndirectJmp is a near jump through a register or memory.
	ClassIndirectJmp
	// ClassJcc is a conditional jump on flags.
	ClassJcc
	// ClassLoop is loop, loope, loopne, jcxz and its kin.
	ClassLoop
	// ClassInt is int3, int n, into and int1.
	ClassInt
	// ClassSyscall is syscall, sysenter and their returns.
	ClassSyscall
	// ClassFar is a far call, jump or return, and iret.
	ClassFar
	// ClassUndefined is ud0, ud1 and ud2.
	ClassUndefined
)

var classNames = [...]string{
	"none", "call", "indirect call", "ret", "jmp", "indirect jmp", "jcc",
	"loop", "int", "syscall", "far", "undefined",
}

// String is the class in words.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return fmt.Sprintf("class %d", uint8(c))
}

// Source is who decided what an instruction is.
type Source uint8

// The sources, the usual one first.
const (
	// SourceX86asm is golang.org/x/arch/x86/x86asm.
	SourceX86asm Source = iota
	// SourceOverride is a row of overrides.txt.
	SourceOverride
	// SourceTables is the kernel decoder's tables: only the length is known.
	SourceTables
)

// ErrUnknown: no instruction of the processor in 64-bit mode that anything
// here knows. It wraps errno.EINVAL.
var ErrUnknown = fmt.Errorf("not an instruction: %w", errno.EINVAL)

// Inst is an instruction as the processor executes it.
type Inst struct {
	// Length in bytes, 1 to 15.
	Length int
	Class  Class
	// Source is who decided.
	Source Source
	// HasTarget: it branches to its end plus Rel.
	HasTarget bool
	Rel       int64
	// RIPRelative: its memory operand is relative to its end.
	RIPRelative bool
	// Offsets and lengths of displacement and immediate; a length of 0 means
	// none. They are the tables' where those agree on the instruction's
	// length, which for instructions that exist they do.
	DispOff, DispLen int
	ImmOff, ImmLen   int

	asm   x86asm.Inst
	row   *override
	shape shape
}

// processorTables are the newest tables: the widest knowledge of lengths.
var processorTables = profile.Decoder{EVEX: true, Errors: true, REX2: true}

// Decode finds the instruction at the start of b as a processor in 64-bit mode
// does; it looks at no more than 15 bytes. x86asm decides; a row of
// overrides.txt goes first. For an instruction behind an escape, VEX or EVEX
// that neither knows, the kernel decoder's tables give the length.
//
// The error is ErrTruncated or ErrUnknown.
func Decode(b []byte) (Inst, error) {
	if len(b) > MaxInsnSize {
		b = b[:MaxInsnSize]
	}
	s, ok := parseShape(b)
	if !ok {
		return Inst{}, ErrTruncated
	}
	if row, n := s.findOverride(); row != nil {
		return overridden(s, row, n)
	}
	i := Inst{}
	var err error
	if i.asm, err = x86asm.Decode(b, 64); err != nil || i.asm.Op == 0 {
		return fromTables(b, &s)
	}
	if i.asm.Len > len(b) {
		return Inst{}, ErrTruncated
	}
	i.Length = i.asm.Len
	i.classify()
	i.locate(b)
	return i, nil
}

func overridden(s shape, row *override, n int) (Inst, error) {
	if n == 0 {
		return Inst{}, ErrTruncated
	}
	i := Inst{Length: n, Source: SourceOverride, row: row, shape: s}
	i.RIPRelative = s.hasModRM && s.modrm&0xC7 == 5
	i.DispOff, i.DispLen = s.dispOff, s.dispLen
	i.ImmOff, i.ImmLen = s.end, s.immSize(row)
	i.Class = classOfMnemonic(row.text)
	return i, nil
}

// classOfMnemonic is the class of a row. Few rows change control flow.
func classOfMnemonic(text string) Class {
	switch {
	case strings.HasPrefix(text, "ud"):
		return ClassUndefined
	case text == "uiret", text == "eretu", text == "erets":
		return ClassFar
	}
	return ClassNone
}

// fromTables is the last resort. x86asm knows all of the primary map, and the
// overrides all of 3DNow!, so what they refuse there does not exist.
func fromTables(b []byte, s *shape) (Inst, error) {
	k, err := DecodeKernel(b, &processorTables)
	switch {
	case err == ErrTruncated:
		return Inst{}, err
	case err != nil, s.enc == encPrimary, s.enc == enc3DNow, !k.HasModRM, k.EmulateLen != 0:
		return Inst{}, ErrUnknown
	}
	i := Inst{Length: k.Length, Source: SourceTables, RIPRelative: k.RIPRelative()}
	i.DispOff, i.DispLen = k.DispOff, k.DispLen
	i.ImmOff, i.ImmLen = k.ImmOff, k.ImmLen
	return i, nil
}

// classify reads class, target and RIP-relative operand from x86asm's answer.
func (i *Inst) classify() {
	i.Class = classOf(i.asm.Op)
	for _, a := range i.asm.Args {
		switch a := a.(type) {
		case x86asm.Rel:
			i.HasTarget, i.Rel = true, int64(a)
		case x86asm.Mem:
			i.RIPRelative = a.Base == x86asm.RIP || a.Base == x86asm.EIP
		}
	}
	switch {
	case i.Class == ClassCall && !i.HasTarget:
		i.Class = ClassIndirectCall
	case i.Class == ClassJmp && !i.HasTarget:
		i.Class = ClassIndirectJmp
	}
}

func classOf(op x86asm.Op) Class {
	switch op {
	case x86asm.CALL:
		return ClassCall
	case x86asm.JMP:
		return ClassJmp
	case x86asm.RET:
		return ClassRet
	case x86asm.JA, x86asm.JAE, x86asm.JB, x86asm.JBE, x86asm.JE, x86asm.JG, x86asm.JGE,
		x86asm.JL, x86asm.JLE, x86asm.JNE, x86asm.JNO, x86asm.JNP, x86asm.JNS,
		x86asm.JO, x86asm.JP, x86asm.JS:
		return ClassJcc
	case x86asm.LOOP, x86asm.LOOPE, x86asm.LOOPNE, x86asm.JCXZ, x86asm.JECXZ, x86asm.JRCXZ:
		return ClassLoop
	case x86asm.INT, x86asm.INTO, x86asm.ICEBP:
		return ClassInt
	case x86asm.SYSCALL, x86asm.SYSENTER, x86asm.SYSEXIT, x86asm.SYSRET:
		return ClassSyscall
	case x86asm.LCALL, x86asm.LJMP, x86asm.LRET, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ:
		return ClassFar
	case x86asm.UD0, x86asm.UD1, x86asm.UD2:
		return ClassUndefined
	}
	return ClassNone
}

// locate fills in where displacement and immediate are, which x86asm tells
// for PC-relative ones only.
func (i *Inst) locate(b []byte) {
	k, err := DecodeKernel(b[:i.Length], &processorTables)
	if err == nil && k.Length == i.Length {
		i.DispOff, i.DispLen = k.DispOff, k.DispLen
		i.ImmOff, i.ImmLen = k.ImmOff, k.ImmLen
		return
	}
	if i.HasTarget {
		i.ImmOff, i.ImmLen = i.asm.PCRelOff, i.asm.PCRel
	} else if i.RIPRelative {
		i.DispOff, i.DispLen = i.asm.PCRelOff, i.asm.PCRel
	}
}

// Target is where a branch at that address leads; false without HasTarget.
func (i *Inst) Target(at x86.Addr) (x86.Addr, bool) {
	return at.Add(int64(i.Length) + i.Rel), i.HasTarget
}

// Text is the instruction at that address in GNU syntax.
func (i *Inst) Text(at x86.Addr) string {
	switch i.Source {
	case SourceOverride:
		return i.shape.text(i.row)
	case SourceTables:
		return "(unknown)"
	}
	return x86asm.GNUSyntax(i.asm, uint64(at), nil)
}

// Text disassembles the instruction at the start of b, which stands at that
// address: one line in GNU syntax, "(bad)" for what is no instruction.
func Text(b []byte, at x86.Addr) string {
	i, err := Decode(b)
	if err != nil {
		return "(bad)"
	}
	return i.Text(at)
}
