package machine

import "kprobelab/x86"

// Answer holds the place to resume from at the next int3, which the host has set beforehand. An
// engine in C declares the same struct.
type Answer struct {
	// State is NoAnswer, Given, or Met once the CPU has executed the int3.
	State int32
	_     int32
	// The int3 at At continues at To, with Flags set in addition.
	At, To x86.Addr
	Flags  uint64
}

// The states of an Answer.
const (
	NoAnswer = iota
	Given
	Met
)

// AnswerInt3 sets beforehand the continuation of the running CPU's int3 at an address: at to, with
// flags set in addition. The receiver of traps is not called then. It holds for one int3, until
// another answer is given or DropAnswer removes it.
func (m *Machine) AnswerInt3(at, to x86.Addr, flags uint64) {
	*m.cur.answer = Answer{State: Given, At: at, To: to, Flags: flags}
}

// Answered reports whether the CPU has executed the int3 that was answered.
func (m *Machine) Answered(cpu int) bool { return m.cpus[cpu].answer.State == Met }

// DropAnswer takes back the answer to an int3 that a CPU has not met.
func (m *Machine) DropAnswer(cpu int) { m.cpus[cpu].answer.State = NoAnswer }
