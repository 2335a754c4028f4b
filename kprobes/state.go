package kprobes

import "kprobelab/x86"

// Status is a CPU's stage in the handling of a hit, with the kernel's values.
type Status int

// The states. They have a meaning only while a probe is being handled.
const (
	// HitActive: the pre handler runs or is about to.
	HitActive Status = 1
	// HitSS: the copy in the slot is being executed.
	HitSS Status = 2
	// Reenter: a nested probe's instruction is being executed, silently.
	Reenter Status = 4
	// HitSSDone: the post handler runs.
	HitSSDone Status = 8
)

// String is the kernel's name without its prefix.
func (s Status) String() string {
	switch s {
	case HitActive:
		return "HIT_ACTIVE"
	case HitSS:
		return "HIT_SS"
	case Reenter:
		return "REENTER"
	case HitSSDone:
		return "HIT_SSDONE"
	}
	return "none"
}

// control is the part of a CPU's state that a nested hit saves.
type control struct {
	// current is the probe being handled, nil if there is none.
	current *Kprobe
	status  Status
	// ool is its slot, kept here because a handler, or another CPU, may
	// unregister the probe while it is being handled.
	ool *outOfLine
	// oldFlags and savedFlags are the IF (and TF) of the interrupted code.
	oldFlags, savedFlags uint64
}

// cpuState is the per-CPU state: current_kprobe, kprobe_ctlblk and
// kprobe_instance.
type cpuState struct {
	control
	// task is the task of the last hit. Its end also ends the hit.
	task int
	// step numbers the events of a hit.
	step int
	// answered: the machine has the answer to the int3 that ends the step.
	answered bool
	// interruptible is true if interrupts were on at the probed place. way is the mechanism by
	// which the CPU reached the handlers that run now.
	interruptible bool
	way           Way
	// instance is the member of an aggregate whose handler runs.
	instance *Kprobe
	// local is the CPU's page of variables, nil while no handler is guest code. frames is the
	// number of the page's register frames in use.
	local  []uint64
	frames int
	// word and byte are buffers for guest memory. A slice of a local variable
	// would be allocated on every hit.
	word [8]byte
	byte [1]byte
	// prev is the saved state of the outer hit during the one nested hit that is possible.
	prev control
	// jump is the state that a jprobe saves while its handler runs.
	jump jprobeArea
}

// begin makes p the probe being handled (set_current_kprobe).
func (k *Kprobes) begin(cpu *cpuState, p *Kprobe, regs *x86.PtRegs) {
	mask := uint64(x86.FlagIF)
	if k.c.Step.TrapFlag {
		mask |= x86.FlagTF
	}
	cpu.current = p
	cpu.ool = p.ool
	cpu.oldFlags = regs.Flags & mask
	cpu.savedFlags = cpu.oldFlags
	if p.ool != nil && p.ool.ModifiesIF {
		cpu.savedFlags &^= x86.FlagIF
	}
}

// come notes how the CPU came to a hit that runs handlers.
func (cpu *cpuState) come(way Way, regs *x86.PtRegs) {
	cpu.way, cpu.interruptible = way, regs.Flags&x86.FlagIF != 0
}

// set copies word by word. The words have just been written one by one. An assignment would read
// two of them at once, which a processor delays until they are in its cache.
func (c *control) set(from *control) {
	c.current, c.status, c.ool = from.current, from.status, from.ool
	c.oldFlags, c.savedFlags = from.oldFlags, from.savedFlags
}

// save and restore are save_previous_kprobe and restore_previous_kprobe.
func (cpu *cpuState) save()    { cpu.prev.set(&cpu.control) }
func (cpu *cpuState) restore() { cpu.control.set(&cpu.prev) }

// ResetCurrentKprobe is reset_current_kprobe. In kernels before 4.19 a pre handler that returns
// non-zero has to call it; later kernels do it themselves.
func (k *Kprobes) ResetCurrentKprobe() { k.cpu().current = nil }

// Current returns the probe that the running CPU is handling, nil if there is none, and its status.
func (k *Kprobes) Current() (*Kprobe, Status) {
	cpu := k.arrive()
	if cpu.current == nil {
		return nil, 0
	}
	return cpu.current, cpu.status
}
