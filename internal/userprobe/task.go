package userprobe

import (
	"maps"
	"slices"

	"kprobelab/internal/process"
)

// task is what a thread has of probes (struct uprobe_task).
type task struct {
	step  *step // nil where none is under way, else own
	own   step
	chain []*instance // of calls whose return is probed, the innermost last
	told  int         // steps of its hit
}

// task is the running thread's.
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

// Forked implements process.Tracer (uprobe_copy_process, dup_xol_work): int3s are in the pages that the
// new process inherits, and so are incremented counters. Its XOL area is its own: at the same
// address where calls wait for their return, else made when it is needed.
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

// plantAll plants what a consumer wants of a process from its beginning on: the filters have not
// known its number before.
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

// numSlots is how many slots the XOL area has; the first is the trampoline's.
const numSlots = 32

// slots are those of the XOL area: a step has one to itself.
type slots struct {
	used   [numSlots]bool
	copies [numSlots]*uprobe // whose copy is there
}

// take is the first that is free, 0 for none.
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
