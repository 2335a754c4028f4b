//go:build unicorn && cgo && linux && amd64

package emu

// #cgo nocallback kpl_watch_set
// #include "shim.h"
import "C"

import (
	"unsafe"

	"kprobelab/machine"
	"kprobelab/x86"
)

// Watch is machine.Watcher's. An engine that runs gets the hooks for it before its next
// block of the outermost run.
func (e *engine) Watch(list []machine.Watch) error {
	watches := make([]C.kpl_watch, len(list))
	for i, w := range list {
		watches[i] = C.kpl_watch{addr: C.uint64_t(w.Addr), len: C.uint32_t(w.Len), kinds: C.uint32_t(w.Kinds), number: C.int32_t(w.Number), cpu: C.KPL_HOSTS}
	}
	if C.kpl_watch_set(e.c, unsafe.SliceData(watches), C.int(len(list))) != 0 {
		return machine.ErrNoMemory
	}
	if err := e.hookWatches(); err != nil {
		C.kpl_watch_set(e.c, nil, 0)
		return err
	}
	return nil
}

// rewatch makes the list again: the debug registers have changed.
func (e *engine) rewatch() error {
	if C.kpl_watch_build(e.c) != 0 {
		return machine.ErrNoMemory
	}
	return e.hookWatches()
}

// hookWatches gives the engines the hooks that the list needs, or takes them away.
func (e *engine) hookWatches() error {
	cpus, want := e.cpus, e.c.watches != nil
	if e.b != nil { // they have one engine, whose TLB tells watched pages from others
		cpus = []*cpu{e.cur}
		C.kpl_cpu_flush_tlb(e.cur.c)
	}
	for _, c := range cpus {
		switch {
		case (c.c.watching != 0) == want:
		case c.c.depth == 0:
			C.kpl_cpu_drop_all(c.c)
			if (c.c.watching != 0) != want {
				return machine.ErrNoMemory
			}
		default:
			C.kpl_watch_drop(c.c)
		}
	}
	return nil
}

//export kplWatched
func kplWatched(h C.uintptr_t, hits *C.kpl_watch_hit, n C.int, regs *C.kpl_regs) C.int {
	e := engineOf(h)
	e.noteTask()
	list := unsafe.Slice((*machine.WatchHit)(unsafe.Pointer(hits)), n)
	return C.int(e.host.Watched(list, (*x86.PtRegs)(unsafe.Pointer(regs))))
}

// What Go and C both use is laid out alike.
var (
	_ [unsafe.Sizeof(machine.WatchHit{})]struct{}         = [unsafe.Sizeof(C.kpl_watch_hit{})]struct{}{}
	_ [unsafe.Offsetof(machine.WatchHit{}.Kinds)]struct{} = [unsafe.Offsetof(C.kpl_watch_hit{}.kinds)]struct{}{}
	_ [unsafe.Offsetof(machine.WatchHit{}.Old)]struct{}   = [unsafe.Offsetof(C.kpl_watch_hit{}.old)]struct{}{}
	_ [unsafe.Offsetof(machine.WatchHit{}.New)]struct{}   = [unsafe.Offsetof(C.kpl_watch_hit{}.now)]struct{}{}
)
