//go:build cgo && linux && amd64

package emu

// #include "shim.h"
import "C"

import "kprobelab/x86"

// AnswerInt3 says beforehand how the running CPU's int3 at an address is to be
// resumed from: at to, with more flags set. The receiver of traps is not asked
// then, and nothing crosses into Go. It holds for one int3, until another
// answer is given or DropAnswer takes it back.
func (m *Machine) AnswerInt3(at, to x86.Addr, flags uint64) {
	c := m.cur.c
	c.answer, c.answer_at, c.answer_to, c.answer_flags = C.KPL_ANSWER, C.uint64_t(at), C.uint64_t(to), C.uint64_t(flags)
}

// Answered reports whether the CPU has met the int3 that was answered
// beforehand.
func (m *Machine) Answered(cpu int) bool { return m.cpus[cpu].c.answer == C.KPL_ANSWERED }

// DropAnswer takes back the answer to an int3 that a CPU has not met.
func (m *Machine) DropAnswer(cpu int) { m.cpus[cpu].c.answer = C.KPL_NO_ANSWER }
