package booted

import (
	"slices"

	"kprobelab/x86"
)

// executions calls functions before instructions of the guest are executed.
type executions struct {
	k  *Kernel
	at map[x86.Addr][]func(*x86.PtRegs)
	// returns are the calls that have not returned yet, by the address to which they return.
	returns map[x86.Addr][]returning
	// off ends the calls of the machine.
	off func()
}

// returning is a call that has not returned yet.
type returning struct {
	task  x86.Addr
	stack uint64
	fn    func(*x86.PtRegs)
}

// on calls fn before each execution of the instruction. It returns false if the machine has no room for one more.
func (e *executions) on(at x86.Addr, fn func(*x86.PtRegs)) bool {
	if e.at == nil {
		e.at, e.returns = map[x86.Addr][]func(*x86.PtRegs){}, map[x86.Addr][]returning{}
		e.off = e.k.machine.OnExecuted(e.execute)
	}
	if !e.k.machine.ShowExecuted(at) {
		return false
	}
	e.at[at] = append(e.at[at], fn)
	return true
}

// onReturn, before the first instruction of a function, calls fn when this call returns. A call that ends with its task
// is forgotten by end.
func (e *executions) onReturn(regs *x86.PtRegs, fn func(*x86.PtRegs)) {
	to := e.k.pointer(x86.Addr(regs.SP))
	if !e.k.machine.ShowExecuted(to) {
		return
	}
	e.returns[to] = append(e.returns[to], returning{e.k.machine.RunningTask(), regs.SP + 8, fn})
}

func (e *executions) execute(regs *x86.PtRegs) {
	at := x86.Addr(regs.IP)
	for _, fn := range e.at[at] {
		fn(regs)
	}
	list := e.returns[at]
	if len(list) == 0 {
		return
	}
	// A function that ends by a jump to another one returns with it: the inner one comes first.
	task, kept := e.k.machine.RunningTask(), list[:0:0]
	var ended []returning
	for _, r := range list {
		if r.task == task && r.stack == regs.SP {
			ended = append(ended, r)
		} else {
			kept = append(kept, r)
		}
	}
	e.returns[at] = kept
	for _, r := range slices.Backward(ended) {
		r.fn(regs)
	}
}

// forget drops the calls of a task, which do not return any more.
func (e *executions) forget(task x86.Addr) {
	for at, list := range e.returns {
		kept := list[:0:0]
		for _, r := range list {
			if r.task != task {
				kept = append(kept, r)
			}
		}
		e.returns[at] = kept
	}
}

// end drops everything.
func (e *executions) end() {
	if e.at != nil {
		e.off()
	}
	e.at, e.returns = nil, nil
}
