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

// Return is what the trampoline calls.
func Return(k *Kprobes, frame x86.Addr, regs *x86.PtRegs) { k.trampolineReturn(frame, regs) }

// Ftrace is what the function tracer's trampoline calls.
func Ftrace(k *Kprobes, regs *x86.PtRegs) { k.ftraceHandler(0, regs) }
