package fromdump

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"kprobelab/errno"
	"kprobelab/kimage/vmcore"
	"kprobelab/machine"
	"kprobelab/x86"
)

// Guest is a kernel in a machine.
type Guest struct{ Host *machine.Host }

// Variable returns the address of a symbol of the guest, 0 if there is no symbol or several of
// its name.
func (g Guest) Variable(name string) x86.Addr {
	if s := g.Host.Source().Lookup(name); len(s) == 1 {
		return s[0].Addr
	}
	return 0
}

// Word reads a word of the guest's memory, 0 if the address is not mapped.
func (g Guest) Word(at x86.Addr) uint64 {
	var b [8]byte
	if g.Host.Machine().ReadMem(at, b[:]) != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

// CurrentTask is the address of the per-CPU variable that has the running task's address.
func (g Guest) CurrentTask() x86.Addr {
	if at := g.Variable("current_task"); at != 0 {
		return at
	}
	return g.Variable("pcpu_hot") // of which it is the first member (6.2 to 6.14)
}

// DirectMap is the address of the guest's map of all physical memory.
func (g Guest) DirectMap() x86.Addr {
	if p := g.Variable("page_offset_base"); p != 0 {
		return x86.Addr(g.Word(p))
	}
	return machine.DirectMap
}

// Entry is the address to which syscall goes.
func (g Guest) Entry() (x86.Addr, error) {
	entry := g.Variable("entry_SYSCALL_64")
	if entry == 0 {
		return 0, fmt.Errorf("%w: the dump's kernel cannot be entered: it has no entry_SYSCALL_64: %w", machine.ErrLayout, errno.ENOENT)
	}
	return entry, nil
}

// FlushTask are the functions that the kernel calls with a task that will never run
// again, for its return probes (kernel/kprobes.c, kernel/trace/rethook.c).
var FlushTask = []string{"kprobe_flush_task", "rethook_flush_task"}

// TaskDead is the function in which a task gives up its CPU for ever (kernel/sched/core.c,
// since 4.9).
const TaskDead = "do_task_dead"

// Panics are the functions that panic() calls when its message is printed
// (kernel/panic.c), to 6.10 and since 6.11.
var Panics = []string{"kmsg_dump", "kmsg_dump_desc"}

// DumpPanic is their first argument then (include/linux/kmsg_dump.h, KMSG_DUMP_PANIC).
const DumpPanic = 1

// panicLine is the beginning of the kernel's line about a panic; the reason follows it.
const panicLine = "Kernel panic - not syncing: "

// Panicked is the error of a kernel that has panicked, with the reason from its console.
func Panicked(console string) error {
	at := strings.LastIndex(console, panicLine)
	if at < 0 {
		return machine.ErrPanicked
	}
	why, _, _ := strings.Cut(console[at+len(panicLine):], "\n")
	return fmt.Errorf("%w: %s", machine.ErrPanicked, strings.TrimSpace(why))
}

// The machine's own memory, in module space from the top down, where no kernel gets
// to (Documentation/arch/x86/x86_64/mm.rst).
const (
	ownEnd  x86.Addr = 0xfffffffffe000000
	ownStep          = 2 << 20
)

// Hole finds size bytes of module space that the guest has not mapped.
func Hole(space *vmcore.Space, size x86.Addr) (x86.Addr, error) {
	free := x86.Addr(0)
	for at := ownEnd; at > machine.ModuleBase-(512<<20); at -= ownStep {
		free += ownStep
		if !unmapped(space, x86.Range{Start: at - ownStep, End: at}) {
			free = 0
		}
		if free >= size {
			return at - ownStep, nil
		}
	}
	return 0, fmt.Errorf("%d bytes of module space: %w", size, machine.ErrNoMemory)
}

// unmapped reports whether no page of a range is mapped. An entry that is empty in a table of a higher level has no
// pages at all.
func unmapped(space *vmcore.Space, r x86.Range) bool {
	for p := r.Start; p < r.End; {
		_, err := space.Translate(p)
		if err == nil {
			return false
		}
		step := x86.Addr(machine.PageSize)
		if gap := (*vmcore.NotMappedError)(nil); errors.As(err, &gap) && gap.Level > 1 {
			step <<= 9 * (gap.Level - 1)
		}
		next := p&^(step-1) + step
		if next < p { // the end of the address space
			break
		}
		p = next
	}
	return true
}
