package main

import (
	"fmt"

	"kprobelab"
	"kprobelab/internal/session"
	"kprobelab/machine"
	"kprobelab/watch"
	"kprobelab/x86"
)

// watchFlag appends to watchpoints.
type watchFlag struct{ to *[]watch.Place }

// Set implements cli.Value.
func (f *watchFlag) Set(text string) error {
	p, err := watch.Parse(text)
	if err == nil {
		*f.to = append(*f.to, p)
	}
	return err
}

// String implements cli.Value.
func (f *watchFlag) String() string { return "" }

// Get implements cli.Value.
func (f *watchFlag) Get() any { return nil }

// accesses are the kinds in words.
var accesses = map[uint32]string{
	machine.WatchRead: "read", machine.WatchWrite: "write", machine.WatchRead | machine.WatchWrite: "read and write", machine.WatchExec: "execute",
}

// watchLine is what the kernel's samples/hw_breakpoint/data_breakpoint.c says of its own.
func watchLine(p *session.Planted, what string) string {
	return fmt.Sprintf("HW Breakpoint for %s %s %s", p.Name, accesses[p.Watched.Kinds], what)
}

// perfScript writes hits as perf script --ns does, and what the bytes held.
type perfScript struct {
	symbolize func(x86.Addr) string
	task      func(n int) (pid int, comm string)
}

func newPerfScript(l *kprobelab.Lab) perfScript {
	s := perfScript{l.Machine.Symbolize, l.GuestTask()}
	if s.task == nil {
		s.task = func(n int) (int, string) { return n, "task" }
	}
	return s
}

func (s perfScript) line(w *watch.Watchpoint, h *watch.Hit, regs *x86.PtRegs) string {
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
