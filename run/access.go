package run

import (
	"fmt"

	"kprobelab"
	"kprobelab/machine"
	"kprobelab/watch"
	"kprobelab/x86"
)

// NamesOf are the names of a kernel's machine.
func NamesOf(l *kprobelab.Lab) Names {
	n := Names{Place: l.Machine.Symbolize}
	if k, err := l.Booted(); err == nil {
		n.Task = k.Names()
	}
	return n
}

// AccessLine is the hit of a watchpoint as perf script --ns writes it, and what the bytes held.
func (n *Names) AccessLine(w *watch.Watchpoint, h *watch.Hit, regs *x86.PtRegs) string {
	pid, comm := h.Task, "task"
	if n.Task != nil {
		pid, comm = n.Task(h.Task)
	}
	ip := x86.Addr(regs.IP)
	size := ""
	if h.Kinds != machine.WatchExec {
		size = fmt.Sprintf("/%d", w.Len)
	}
	line := fmt.Sprintf("%16s %5d [%03d] %5d.%09d: mem:0x%x%s:%s: %s", comm, pid, h.CPU, h.Now/1e9, h.Now%1e9, uint64(w.Addr), size, watch.Access(w.Kinds), n.Place(ip))
	if h.Kinds == machine.WatchExec {
		return line
	}
	return fmt.Sprintf("%s %s: 0x%x -> 0x%x", line, watch.Access(h.Kinds), h.Old, h.New)
}
