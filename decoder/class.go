package decoder

import (
	"fmt"
	"strings"
)

// Class is the effect of an instruction on control flow.
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
	// ClassJmp is a near relative jump, or one to an absolute address in the instruction.
	ClassJmp
	// ClassIndirectJmp is a near jump through a register or memory.
	ClassIndirectJmp
	// ClassJcc is a conditional jump on flags.
	ClassJcc
	// ClassLoop is loop, loope, loopne, jcxz and its kin.
	ClassLoop
	// ClassInt is int3, int n and int1.
	ClassInt
	// ClassSyscall is syscall, sysenter and their returns.
	ClassSyscall
	// ClassFar is a far call, jump or return, iret, uiret, erets and eretu.
	ClassFar
	// ClassUndefined is ud0, ud1 and ud2.
	ClassUndefined
)

var classNames = [...]string{
	"none", "call", "indirect-call", "ret", "jmp", "indirect-jmp", "jcc",
	"loop", "int", "syscall", "far", "undefined",
}

// String is the class in one word.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return fmt.Sprintf("class-%d", uint8(c))
}

// ParseClass returns the class of that name; false if there is none.
func ParseClass(name string) (Class, bool) {
	for c, s := range classNames {
		if s == name {
			return Class(c), true
		}
	}
	return ClassNone, false
}

var mnemonicClasses = map[string]Class{
	"call": ClassIndirectCall, "jmp": ClassIndirectJmp, "jmpabs": ClassJmp, "ret": ClassRet,
	"loop": ClassLoop, "loope": ClassLoop, "loopne": ClassLoop, "jrcxz": ClassLoop, "jecxz": ClassLoop, "jcxz": ClassLoop,
	"int": ClassInt, "int1": ClassInt, "int3": ClassInt, "into": ClassInt,
	"syscall": ClassSyscall, "sysenter": ClassSyscall, "sysexit": ClassSyscall, "sysret": ClassSyscall,
	"iret": ClassFar, "iretd": ClassFar, "iretq": ClassFar, "uiret": ClassFar, "erets": ClassFar, "eretu": ClassFar,
	"callf": ClassFar, "jmpf": ClassFar, "retf": ClassFar,
	"udb": ClassUndefined, "ud0": ClassUndefined, "ud1": ClassUndefined, "ud2": ClassUndefined,
}

// classOfMnemonic is the class of a row.
func classOfMnemonic(name string, imm immKind) Class {
	c := mnemonicClasses[name]
	relative := imm == immRel8 || imm == immRel32
	switch {
	case relative && c == ClassIndirectCall:
		return ClassCall
	case relative && c == ClassIndirectJmp:
		return ClassJmp
	case relative && c == ClassNone && strings.HasPrefix(name, "j"):
		return ClassJcc
	}
	return c
}
