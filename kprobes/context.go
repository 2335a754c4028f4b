package kprobes

// entryPath is how a CPU came to run a probe's handlers, which decides what
// they may do.
type entryPath int

// The paths.
const (
	// byTrap: through a breakpoint, or the trap that ended its step.
	byTrap entryPath = iota
	// byTracer: the function tracer called.
	byTracer
	// byJump: the jump of an optimized probe.
	byJump
	// byReturn: the trampoline of return probes.
	byReturn
)

// nmiCount is preempt_count in an NMI, as which an int3 in the kernel is
// entered: NMI_OFFSET and HARDIRQ_OFFSET.
const nmiCount = 0x110000

// IRQsDisabled is irqs_disabled() in the handler that runs now: always after a
// breakpoint; else interrupts are as they were at the probed place, in the
// releases that leave them. It is false while no handler runs.
func (k *Kprobes) IRQsDisabled() bool {
	cpu, h := k.arrive()
	defer k.depart(cpu, h)
	switch {
	case cpu.current == nil:
		return false
	case cpu.path == byTrap,
		cpu.path == byTracer && k.c.Step.FtraceIRQsOff,
		cpu.path == byJump && k.c.Optimize.IRQsOff,
		cpu.path == byReturn && k.c.Kret.HandlerIRQsOff:
		return true
	}
	return !cpu.interruptible
}

// PreemptCount is preempt_count() in the handler that runs now, in a task that
// was preemptible: 0x110000 after a breakpoint where that counts as an NMI; else
// 1 where the kernel counts at all (PREEMPTION). It is 0 while no handler runs.
func (k *Kprobes) PreemptCount() uint32 {
	cpu, h := k.arrive()
	defer k.depart(cpu, h)
	switch {
	case cpu.current == nil:
		return 0
	case cpu.path == byTrap && k.c.Step.Int3IsNMI:
		return nmiCount
	case k.c.Preemption:
		return 1
	}
	return 0
}
