package perfetto

import "kprobelab/x86"

// Watched is a hit of a watchpoint on the track of the task that made it.
type Watched struct {
	Now       uint64
	CPU, Task int
	// Thread is a program's without a kernel, nil for a task of a kernel.
	Thread *Thread
	// Name is the watchpoint, Access the kind of access: r, w, rw or x.
	Name, Access string
	Addr, IP     x86.Addr
	// Old and New are the values of its bytes before and after. They mean nothing if the bytes were executed.
	Old, New uint64
}

// watchCategory is the category of all watchpoints.
const watchCategory = "watchpoints"

// Watched draws a hit of a watchpoint.
func (t *Timeline) Watched(h *Watched) {
	if h.Thread != nil {
		t.emit(h.Thread.event(h.Now, Instant, watchCategory, h.Name, t.watched(h)...))
		return
	}
	pid, comm := t.task(h.Task)
	t.emit(&Event{
		Time: h.Now, Kind: Instant, CPU: h.CPU, PID: pid, Comm: comm, Category: watchCategory, Name: h.Name,
		Args: append([]Arg{{Name: "cpu", Value: int64(h.CPU)}}, t.watched(h)...),
	})
}

func (t *Timeline) watched(h *Watched) []Arg {
	args := []Arg{{Name: "addr", Value: Pointer(h.Addr)}, {Name: "access", Value: h.Access}, {Name: "ip", Value: t.symbol(h.IP)}}
	if h.Access != "x" {
		args = append(args, Arg{Name: "old", Value: h.Old}, Arg{Name: "new", Value: h.New})
	}
	return args
}
