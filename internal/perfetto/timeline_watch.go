package perfetto

import "kprobelab/x86"

// Watched is a hit of a watchpoint on the track of the task that made it.
type Watched struct {
	Now       uint64
	CPU, Task int
	// Name is the watchpoint, Access what was done: r, w, rw or x.
	Name, Access string
	Addr, IP     x86.Addr
	// Old and New are what its bytes held, without meaning where they were executed.
	Old, New uint64
}

// Watched draws a hit of a watchpoint.
func (t *Timeline) Watched(h *Watched) {
	pid, comm := t.task(h.Task)
	e := &Event{
		Time: h.Now, Kind: Instant, CPU: h.CPU, PID: pid, Comm: comm, Category: "watchpoints", Name: h.Name,
		Args: []Arg{
			{Name: "cpu", Value: int64(h.CPU)}, {Name: "addr", Value: Pointer(h.Addr)}, {Name: "access", Value: h.Access},
			{Name: "ip", Value: t.symbol(h.IP)},
		},
	}
	if h.Access != "x" {
		e.Args = append(e.Args, Arg{Name: "old", Value: h.Old}, Arg{Name: "new", Value: h.New})
	}
	t.emit(e)
}
