package kprobes

// Way is the mechanism by which a CPU reached a probe. It decides what handlers may do.
type Way int

// The ways.
const (
	WayInt3   Way = iota // the probe's int3
	WayStep              // the int3 that follows the copy in the slot
	WayDebug             // the debug exception of the trap flag
	WayTracer            // the function tracer
	WayDetour            // the jump of an optimized probe
	WayReturn            // the trampoline of return probes
)

// IRQsDisabled is irqs_disabled() in the handler that runs now. Interrupts are
// off after a breakpoint. On the other ways they are as at the probed place, or
// off in the releases that turn them off. It is false while no handler runs.
func (k *Kprobes) IRQsDisabled() bool {
	cpu := k.arrive()
	switch {
	case cpu.current == nil:
		return false
	case cpu.way == WayInt3,
		cpu.way == WayTracer && k.c.Step.FtraceIRQsOff,
		cpu.way == WayDetour && k.c.Optimize.IRQsOff,
		cpu.way == WayReturn && k.c.Kret.HandlerIRQsOff:
		return true
	}
	return !cpu.interruptible
}

// PreemptCount is preempt_count() in the handler that runs now, for a task that
// was preemptible: 0x110000 after a breakpoint that counts as an NMI (0x11000000 since
// 7.3), else 1 with PREEMPTION and 0 without. It is 0 while no handler runs.
func (k *Kprobes) PreemptCount() uint32 {
	cpu := k.arrive()
	switch {
	case cpu.current == nil:
		return 0
	case cpu.way == WayInt3 && k.c.Step.Int3IsNMI:
		return k.nmiCount
	case k.c.Preemption:
		return 1
	}
	return 0
}
