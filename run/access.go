package run

import (
	"fmt"

	"kprobelab"
	"kprobelab/machine"
	"kprobelab/watch"
	"kprobelab/x86"
)

// AccessLines writes hits of watchpoints as perf script --ns does, and what the bytes held.
type AccessLines struct {
	symbolize func(x86.Addr) string
	task      func(n int) (pid int, comm string)
}

// NewAccessLines makes them for a kernel's machine.
func NewAccessLines(l *kprobelab.Lab) AccessLines {
	s := AccessLines{l.Machine.Symbolize, func(n int) (int, string) { return n, "task" }}
	if k, err := l.Booted(); err == nil {
		s.task = k.Names()
	}
	return s
}

// Line is the line of a hit.
func (s AccessLines) Line(w *watch.Watchpoint, h *watch.Hit, regs *x86.PtRegs) string {
	pid, comm := s.task(h.Task)
	ip := x86.Addr(regs.IP)
	size := ""
	if h.Kinds != machine.WatchExec {
		size = fmt.Sprintf("/%d", w.Len)
	}
	line := fmt.Sprintf("%16s %5d [%03d] %5d.%09d: mem:0x%x%s:%s: %s", comm, pid, h.CPU, h.Now/1e9, h.Now%1e9, uint64(w.Addr), size, watch.Access(w.Kinds), s.symbolize(ip))
	if h.Kinds == machine.WatchExec {
		return line
	}
	return fmt.Sprintf("%s %s: 0x%x -> 0x%x", line, watch.Access(h.Kinds), h.Old, h.New)
}
