package interp

import "kprobelab/x86"

// AnswerInt3 says beforehand how the running CPU's int3 at an address is to be
// resumed from: at to, with more flags set. The receiver of traps is not asked
// then, and nothing crosses into Go. It holds for one int3, until another
// answer is given or DropAnswer takes it back.
func (m *Machine) AnswerInt3(at, to x86.Addr, flags uint64) {
	m.cur.answer = answer{state: given, at: uint64(at), to: uint64(to), flags: flags}
}

// Answered reports whether the CPU has met the int3 that was answered
// beforehand.
func (m *Machine) Answered(cpu int) bool { return m.cpus[cpu].answer.state == met }

// DropAnswer takes back the answer to an int3 that a CPU has not met.
func (m *Machine) DropAnswer(cpu int) { m.cpus[cpu].answer.state = none }

// answer is how an int3 is resumed from, where the host has said so beforehand.
type answer struct {
	state         answerState
	at, to, flags uint64
}

type answerState uint8

const (
	none answerState = iota
	given
	met
)

// answered goes on from an int3 that was answered.
func (c *cpu) answered() bool {
	a := &c.answer
	if a.state != given || c.ip-1 != a.at {
		return false
	}
	a.state = met
	c.ip = a.to
	c.setEflags(c.eflags() | a.flags)
	return true
}
