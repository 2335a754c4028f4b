package kprobelab

import (
	"encoding/binary"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/kprobes/pool"
	"kprobelab/x86"
)

// FollowPools keeps accounts of the return instances of the return probes that are registered later (kprobes.Kretprobe.Usage), with
// the tasks that hold them and their stacks. Without the tables of a booted kernel a stack ends with the function's caller. The guest is as without.
func (l *Lab) FollowPools() { l.Kprobes.FollowPools(l.holder) }

// holder has the name of a task, and its stack from a function's entry on.
func (l *Lab) holder(task int, regs *x86.PtRegs) pool.Place {
	p := pool.Place{PID: task, Comm: "task"}
	original := func(addr, at uint64) uint64 {
		if x86.Addr(addr) == l.Kprobes.Trampoline() {
			if to := l.Kprobes.FindReturnAddress(task, x86.Addr(at), nil); to != 0 {
				return uint64(to)
			}
		}
		return addr
	}
	stack := []x86.Addr{x86.Addr(regs.IP)}
	if l.booted != nil {
		o := l.booted.Observe()
		p.PID, p.Comm = o.Named(l.Machine.TaskStruct(task))
		stack = o.Stack(regs, bounded.LossFrames, original)
	} else if b := make([]byte, 8); l.Machine.ReadMem(x86.Addr(regs.SP), b) == nil {
		stack = append(stack, x86.Addr(original(binary.LittleEndian.Uint64(b), regs.SP)))
	}
	for _, at := range stack {
		name, _, _ := strings.Cut(l.Machine.Symbolize(at), "/") // without the function's size
		p.Stack = append(p.Stack, name)
	}
	return p
}
