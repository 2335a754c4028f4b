package kimage

import "kprobelab/x86"

// PreemptCounter holds the link-time address of a CPU's preempt count and its size:
// four bytes to 7.2, eight since 7.3, with wider fields.
type PreemptCounter struct {
	At   x86.Addr
	Size int
}

// PreemptCount finds the per-CPU preempt count: the variable __preempt_count, or in 6.2
// to 6.14 the second word of pcpu_hot. It takes the Lookup of a View.
func PreemptCount(lookup func(name string) []Symbol) (p PreemptCounter, ok bool) {
	if s := lookup("__preempt_count"); len(s) > 0 {
		if s[0].Size == 8 {
			return PreemptCounter{s[0].Addr, 8}, true
		}
		return PreemptCounter{s[0].Addr, 4}, true
	}
	// struct pcpu_hot { current_task, preempt_count, cpu_number, … }
	if s := lookup("pcpu_hot"); len(s) > 0 {
		return PreemptCounter{s[0].Addr + 8, 4}, true
	}
	return PreemptCounter{}, false
}

// Read is the count in its bytes, of which b has as many as Size says.
func (p PreemptCounter) Read(b []byte) uint64 {
	if p.Size == 8 {
		return le.Uint64(b)
	}
	return uint64(le.Uint32(b))
}

// Append puts a count's bytes after b.
func (p PreemptCounter) Append(b []byte, count uint64) []byte {
	if p.Size == 8 {
		return le.AppendUint64(b, count)
	}
	return le.AppendUint32(b, uint32(count))
}

// NoResched is the highest bit: set if no reschedule is needed. A task that may be
// preempted has only this bit set (arch/x86/include/asm/preempt.h).
func (p PreemptCounter) NoResched() uint64 { return 1 << (8*p.Size - 1) }

// HardIRQ are the bits of interrupts that are served (include/linux/preempt.h). Since
// 7.3 eight bits that say how often interrupts were disabled come before them.
func (p PreemptCounter) HardIRQ() uint64 {
	if p.Size == 8 {
		return 0xf << 24
	}
	return 0xf << 16
}

// NMI is the count in an NMI of a task that may be preempted: NMI_OFFSET and
// HARDIRQ_OFFSET.
func (p PreemptCounter) NMI() uint32 {
	if p.Size == 8 {
		return 0x11000000
	}
	return 0x110000
}

// CurrentTask finds the per-CPU pointer to the current task, as PreemptCount does.
func CurrentTask(lookup func(name string) []Symbol) (at x86.Addr, ok bool) {
	for _, name := range []string{"current_task", "pcpu_hot"} {
		if s := lookup(name); len(s) > 0 {
			return s[0].Addr, true
		}
	}
	return 0, false
}
