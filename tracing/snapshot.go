package tracing

import (
	"kprobelab/errno"
	"kprobelab/internal/tracing/event"
	"kprobelab/internal/tracing/ring"
	"kprobelab/x86"
)

// A snapshot is the trace buffer at a moment: the buffer and a spare one are exchanged, so that the
// spare one's old content is in the trace afterwards.

// allocSnapshot makes the spare buffer: ENOMEM if there is no room for it.
func (a *traceArray) allocSnapshot() error {
	if a.spare == nil {
		spare := ring.New(a.ring.CPUs(), 1)
		if err := a.t.memory.take(ringMemory(spare)); err != nil {
			return err
		}
		a.spare = spare
	}
	for cpu := range a.ring.CPUs() {
		if size := a.ring.Size(cpu); a.spare.Size(cpu) != size {
			if err := a.resize(a.spare, cpu, size); err != nil {
				a.freeSnapshot()
				return err
			}
		}
	}
	return nil
}

func (a *traceArray) freeSnapshot() {
	if a.spare != nil {
		a.t.memory.give(ringMemory(a.spare))
		a.spare = nil
	}
}

// takeSnapshot is update_max_tr.
func (a *traceArray) takeSnapshot() error {
	if err := a.allocSnapshot(); err != nil {
		return err
	}
	a.ring.Swap(a.spare)
	return nil
}

// triggerSnapshot takes one on behalf of a hit (tracing_snapshot_instance).
func (a *traceArray) triggerSnapshot(regs *x86.PtRegs, w way) {
	switch {
	case w == wayInt3: // counts as an NMI, in which it cannot be done
		a.t.top.complain(regs, w, "*** SNAPSHOT CALLED FROM NMI CONTEXT ***\n", "*** snapshot is being ignored        ***\n")
	case a.spare == nil:
		a.t.top.complain(regs, w, "*** SNAPSHOT NOT ALLOCATED ***\n", "*** stopping trace here!   ***\n")
		a.setOn(false)
	case a.takeSnapshot() != nil: // the trace was made larger, and there is no room for a second one
		a.t.top.complain(regs, w, "*** SNAPSHOT NOT ALLOCATED ***\n", "*** stopping trace here!   ***\n")
		a.setOn(false)
	}
}

// snapshotText is the file snapshot, of a CPU or of all.
func (a *traceArray) snapshotText(cpu int) string {
	if a.spare != nil && !empty(a.spare, cpu) {
		return a.bufferText(a.spare, cpu)
	}
	state := "freed"
	if a.spare != nil {
		state = "allocated"
	}
	how := "# echo 0 > snapshot : Clears and frees snapshot buffer\n" +
		"# echo 1 > snapshot : Allocates snapshot buffer, if not already allocated.\n" +
		"#                      Takes a snapshot of the main buffer.\n" +
		"# echo 2 > snapshot : Clears snapshot buffer (but does not allocate or free)\n"
	if cpu != ring.AllCPUs {
		how = "# echo 0 > snapshot : Invalid for per_cpu snapshot file.\n" +
			"# echo 1 > snapshot : Not supported with this kernel.\n" +
			"#                     Must use main snapshot file to allocate.\n" +
			"# echo 2 > snapshot : Clears this cpu's snapshot buffer (but does not allocate)\n"
	}
	return "# tracer: " + a.tracer + "\n#\n#\n# * Snapshot is " + state + " *\n#\n# Snapshot commands:\n" + how +
		"#                      (Doesn't have to be '2' works with any number that\n" +
		"#                       is not a '0' or '1')\n"
}

func empty(r *ring.Buffer, cpu int) bool {
	_, some := r.Iterate(cpu).Next(nil)
	return !some
}

// writeSnapshot is a write to it (tracing_snapshot_write).
func (a *traceArray) writeSnapshot(cpu int, s string) error {
	v, err := decimal(s)
	switch {
	case err != nil:
		return err
	case v < 2 && cpu != ring.AllCPUs:
		return errno.EINVAL
	case v == 0:
		a.freeSnapshot()
	case v == 1:
		return a.takeSnapshot()
	case a.spare == nil:
	case cpu == ring.AllCPUs:
		a.spare.Reset()
	default:
		a.spare.ResetCPU(cpu)
	}
	return nil
}

func (a *traceArray) snapshotNode(cpu int) *node {
	return setting("snapshot", func() string { return a.snapshotText(cpu) }, func(s string) error { return a.writeSnapshot(cpu, s) })
}

// complain writes the kernel's own messages into the buffer
// (internal_trace_puts).
func (a *traceArray) complain(regs *x86.PtRegs, w way, texts ...string) {
	head := make([]byte, event.CommonSize)
	a.t.head(head, regs, w, false)
	for _, s := range texts {
		if a.recording() {
			a.puts(snapshotMark, head, s)
		}
	}
	a.t.comms.save(a.t.pid, a.t.comm)
}
