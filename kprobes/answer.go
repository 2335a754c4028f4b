package kprobes

import "kprobelab/x86"

// Answerer is an optional interface of a machine, for speed. AnswerInt3 tells the machine
// beforehand where the int3 that follows a copied instruction continues. A step that ends without a
// handler then takes one call of Traps, not two.
type Answerer interface {
	// AnswerInt3 sets the address to at which the running CPU continues after its next int3 at the
	// address at, and the flags that it sets then. The machine does not call Traps for that int3.
	AnswerInt3(at, to x86.Addr, flags uint64)
	// Answered reports whether a CPU has reached the int3 that was answered.
	Answered(cpu int) bool
	// DropAnswer removes the answer that a CPU has not reached yet.
	DropAnswer(cpu int)
}

// answerStep answers the int3 that ends a step, if no post handler and no observer waits for it.
// Until the CPU executes that int3 its state is that of a step; settle ends the hit after that.
func (k *Kprobes) answerStep(cpu *cpuState, p *Kprobe) {
	ool := cpu.ool
	if k.answerer == nil || k.observe != nil || k.c.Step.TrapFlag || ool.Boosted || p.hasPost() {
		return
	}
	at := ool.Addr.Add(int64(ool.InsnLen))
	if !k.afterCopy(ool, uint64(at)+1) {
		return
	}
	cpu.answered = true
	k.answerer.AnswerInt3(at, at.Add(ool.At.Sub(ool.Addr)), cpu.savedFlags)
}

// dropAnswers removes all answers that no CPU has reached: those int3s call Traps again.
func (k *Kprobes) dropAnswers() {
	for n := range k.cpus {
		if cpu := k.settle(n); cpu.answered {
			k.dropAnswer(cpu, n)
		}
	}
}

func (k *Kprobes) dropAnswer(cpu *cpuState, n int) {
	cpu.answered = false
	k.answerer.DropAnswer(n)
}

// cpu is the state of the CPU that runs now.
func (k *Kprobes) cpu() *cpuState { return &k.cpus[k.cpuNumber()] }

func (k *Kprobes) cpuNumber() int {
	if k.where.cpu != nil {
		return *k.where.cpu
	}
	return k.m.CPU()
}

// task is the number of the task that runs now.
func (k *Kprobes) task() int {
	if k.where.task != nil {
		return *k.where.task
	}
	return k.m.Task()
}

// arrive is the first thing that Go does at a trap or a call-out.
func (k *Kprobes) arrive() *cpuState { return k.settle(k.cpuNumber()) }

// settle ends a CPU's hit whose end was answered, and returns its state.
func (k *Kprobes) settle(n int) *cpuState {
	cpu := &k.cpus[n]
	if cpu.answered {
		k.endAnswered(cpu, n)
	}
	return cpu
}

func (k *Kprobes) endAnswered(cpu *cpuState, n int) {
	if k.answerer.Answered(n) {
		cpu.current, cpu.answered = nil, false
	}
}
