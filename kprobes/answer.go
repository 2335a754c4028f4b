package kprobes

import "kprobelab/x86"

// Answerer is what a machine may have beside Machine, to be faster: it can be
// told beforehand how the int3 behind a copied instruction is resumed from, so
// that a step whose end runs no handler takes one call of Traps, not two.
type Answerer interface {
	// AnswerInt3 has the running CPU's next int3 at an address resumed at to,
	// with more flags set, as if Traps had said so.
	AnswerInt3(at, to x86.Addr, flags uint64)
	// Answered reports whether a CPU has met the int3 that was answered.
	Answered(cpu int) bool
	// DropAnswer takes back an answer that a CPU has not met.
	DropAnswer(cpu int)
}

// answerStep does beforehand what finishStep would do without a post handler
// and without an observer. Until the answer is met the CPU's state is that of a
// step, and settle ends the hit when it has been.
func (k *Kprobes) answerStep(cpu *cpuState, p *Kprobe) {
	ool := cpu.ool
	if k.answerer == nil || k.observe != nil || k.c.Step.TrapFlag || ool.Boosted || p.hasPost() {
		return
	}
	at := ool.Addr.Add(int64(ool.InsnLen))
	if !k.behindCopy(ool, uint64(at)+1) {
		return
	}
	cpu.answered = true
	k.answerer.AnswerInt3(at, at.Add(ool.At.Sub(ool.Addr)), cpu.savedFlags)
}

// dropAnswers takes all answers back that were not met: what they left out is
// wanted now.
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

// settle ends a CPU's hit whose end was answered, and returns its state.
func (k *Kprobes) settle(n int) *cpuState {
	cpu := &k.cpus[n]
	if cpu.answered && k.answerer.Answered(n) {
		cpu.current, cpu.answered = nil, false
	}
	return cpu
}
