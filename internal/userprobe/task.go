package userprobe

import (
	"maps"
	"slices"

	"kprobelab/internal/process"
)

// task is the state of probes in a thread (struct uprobe_task).
type task struct {
	step  *step // nil if none is under way, else own
	own   step
	chain []*instance // of calls with a probed return, the innermost last
	told  int         // the number of reported steps of its hit
}

// task returns the running thread's state.
func (k *Probes) task() *task {
	tid := k.p.TID()
	t := k.tasks[tid]
	if t == nil {
		t = &task{}
		k.tasks[tid] = t
	}
	return t
}

// endStep ends a step out of line.
func (k *Probes) endStep(t *task) {
	t.step.in.slots.free(t.step.slot)
	t.step = nil
}

// ThreadEnd implements process.Tracer (uprobe_free_utask).
func (k *Probes) ThreadEnd(tid int) {
	if t := k.tasks[tid]; t != nil && t.step != nil {
		k.endStep(t)
	}
	delete(k.tasks, tid)
}

// Forked implements process.Tracer (uprobe_copy_process, dup_xol_work): the new process inherits
// the pages with int3s, and the incremented counters. It has an XOL area of its own: at the same
// address if calls wait for their return, else made when it is needed.
func (k *Probes) Forked(tid int, s *process.Space, vfork bool) {
	old, shared := k.of(k.p.Space), s == k.p.Space
	if !shared {
		own := k.of(s)
		own.counted, own.calls = maps.Clone(old.counted), maps.Clone(old.calls)
		if how := k.optimization(); how != nil && !how.alone {
			own.trampolines = slices.Clone(old.trampolines)
		}
		for u, at := range old.at {
			own.at[u] = maps.Clone(at)
		}
	}
	k.plantAll(s)
	t := k.tasks[k.p.TID()]
	if t == nil || len(t.chain) == 0 || shared && !vfork {
		return
	}
	k.tasks[tid] = &task{chain: slices.Clone(t.chain)}
	if !shared && old.area != 0 {
		k.of(s).area = k.makeXOL(s, old.area)
	}
}

// plantAll plants the probes for a process's consumers at its beginning: the filters did not know
// its number before.
func (k *Probes) plantAll(s *process.Space) {
	for _, u := range k.order {
		if len(k.of(s).at[u]) > 0 || !u.wanted(s) {
			continue
		}
		for _, v := range s.Maps() {
			k.plant(u, s, &v)
		}
	}
}

// Executed implements process.Tracer (uprobe_free_utask).
func (k *Probes) Executed() { k.ThreadEnd(k.p.TID()) }

// SpaceEnd implements process.Tracer (uprobe_clear_state).
func (k *Probes) SpaceEnd(s *process.Space) { delete(k.spaces, s) }

// numSlots is the number of slots of the XOL area; the first belongs to the trampoline.
const numSlots = 32

// slots are the slots of the XOL area. Each step has a slot of its own.
type slots struct {
	used   [numSlots]bool
	copies [numSlots]*uprobe // the probe whose copy the slot holds
}

// take returns the first free slot, 0 if none is.
func (s *slots) take() int {
	for n := 1; n < numSlots; n++ {
		if !s.used[n] {
			s.used[n] = true
			return n
		}
	}
	return 0
}

func (s *slots) free(n int) { s.used[n] = false }
