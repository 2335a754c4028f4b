package machine

import (
	"kprobelab/internal/contract"
	"kprobelab/x86"
)

// AnswerInt3 sets beforehand the continuation of the running CPU's int3 at an address: at to, with
// flags set in addition. The receiver of traps is not called then. It holds for one int3, until
// another answer is given or DropAnswer removes it.
func (m *Machine) AnswerInt3(at, to x86.Addr, flags uint64) {
	*m.cur.answer = contract.Answer{State: contract.Given, At: at, To: to, Flags: flags}
}

// Answered reports whether the CPU has executed the int3 that was answered.
func (m *Machine) Answered(cpu int) bool { return m.cpus[cpu].answer.State == contract.Met }

// DropAnswer takes back the answer to an int3 that a CPU has not met.
func (m *Machine) DropAnswer(cpu int) { m.cpus[cpu].answer.State = contract.NoAnswer }
