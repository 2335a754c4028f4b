package userprobe

// task is what a thread has of probes (struct uprobe_task).
type task struct {
	step  *step       // nil where none is under way
	chain []*instance // of calls whose return is probed, the innermost last
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
	k.slots.free(t.step.slot)
	t.step = nil
}

// ThreadEnd implements process.Tracer (uprobe_free_utask).
func (k *Probes) ThreadEnd(tid int) {
	if t := k.tasks[tid]; t != nil && t.step != nil {
		k.endStep(t)
	}
	delete(k.tasks, tid)
}

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
