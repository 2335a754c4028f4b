package kprobes

import "kprobelab/x86"

// StatusOf is a CPU's current probe and status.
func StatusOf(k *Kprobes, cpu int) (*Kprobe, Status) {
	return k.cpus[cpu].current, k.cpus[cpu].status
}

// Instances of the slot cache.
func SlotPages(k *Kprobes) (pages, spare, garbage int) {
	return len(k.slots.pages), len(k.slots.spare), k.slots.garbage
}

// SlotsPerPage is the cache's geometry.
const SlotsPerPage = slotsPerPage

// BucketOf is the list's bucket of an address.
func BucketOf(k *Kprobes, a x86.Addr) int { return k.table.bucketOf(a) }

// Return calls the Go function of the return trampoline's call-out.
func Return(k *Kprobes, frame x86.Addr, regs *x86.PtRegs) { k.trampolineReturn(frame, regs) }

// HandleAddr is the probed address of a detour buffer's handle, 0 if the buffer's aggregator has
// left the table.
func HandleAddr(k *Kprobes, handle uint64) x86.Addr {
	if handle >= uint64(len(k.handles)) || k.handles[handle] == nil {
		return 0
	}
	p := k.handles[handle].entry
	if k.table.lookup(p.Addr) != p {
		return 0
	}
	return p.Addr
}

// Announced reports whether a change of text at an address is announced.
func Announced(k *Kprobes, at x86.Addr) bool {
	return k.opt.text.Met(at) != nil
}

// Detours are the used slots of detour buffers.
func Detours(k *Kprobes) (used, garbage int) {
	for _, pg := range k.opt.slots.pages {
		used += pg.used
	}
	return used, k.opt.slots.garbage
}

// OptimizedCallback calls the Go function of a detour buffer's call-out.
func OptimizedCallback(k *Kprobes, regs *x86.PtRegs) { k.optimizedCallback(0, regs) }

// Ftrace calls the Go function of the function tracer's trampoline.
func Ftrace(k *Kprobes, regs *x86.PtRegs) { k.ftraceHandler(0, regs) }
