package kprobes

import (
	"errors"
	"fmt"

	"kprobelab/errno"
	"kprobelab/kprobes/textpoke"
)

// The worker is kprobe_optimizer. It undoes the jumps that are queued for that, waits until every
// task has scheduled, writes the queued jumps, and frees unused buffers (docs/spec 4.7). It is
// scheduled when a probe is queued. It runs in steps, and other CPUs may run between them.
//
// A kernel's worker starts 5 jiffies after it was scheduled. This one runs only when its caller
// calls WorkerStep or Settle, so that nothing changes unexpectedly in the middle of a run.
// WorkerDue reports when the kernel's worker would start; a session calls it between calls and
// between the slices of tasks.

// phase is the step that the worker is in.
type phase int

const (
	// workerIdle: it does not run; it may be scheduled.
	workerIdle phase = iota
	// workerUndo: step 1, the unoptimizing list.
	workerUndo
	// workerClean: step 1, the freeing list: OPTIMIZED, int3s, the table.
	workerClean
	// workerWait: step 2.
	workerWait
	// workerOptimize: step 3, the optimizing list.
	workerOptimize
	// workerFree: step 4, the freeing list again, and step 5.
	workerFree
)

// worker is the delayed work.
type worker struct {
	// scheduled: it is to run when the clock says due, in nanoseconds.
	scheduled bool
	due       uint64
	phase     phase
	// op is the probe whose text is being written.
	op    *optimized
	grace grace
	// undone: this run has undone a jump.
	undone bool
	// stepping guards against an observer that calls back.
	stepping bool
}

// Progress is the result of a step of the worker.
type Progress int

const (
	// Idle: nothing is scheduled.
	Idle Progress = iota
	// Advanced: a step was taken.
	Advanced
	// Waiting: some task has not scheduled yet. The caller has to let it run.
	Waiting
)

// kick is kick_kprobe_optimizer. Work that is scheduled keeps its time.
func (k *Kprobes) kick() {
	w := &k.opt.worker
	if w.scheduled {
		return
	}
	w.scheduled = true
	w.due = k.m.Now()
	if hz := k.c.HZ; hz > 0 {
		w.due += uint64(k.c.Optimize.DelayJiffies) * 1_000_000_000 / uint64(hz)
	}
}

// WorkerDue returns the virtual time at which the worker is due, in nanoseconds, and whether it is
// scheduled or in the middle of a run.
func (k *Kprobes) WorkerDue() (at uint64, ok bool) {
	k.askHeld()
	w := &k.opt.worker
	return w.due, w.scheduled || w.phase != workerIdle
}

// WorkerRuns reports whether the worker is in the middle of a run.
func (k *Kprobes) WorkerRuns() bool { return k.opt.worker.phase != workerIdle }

// WorkerStep lets the worker take one step, whatever the time. The result is Idle if it is not
// scheduled, and Waiting if it waits for tasks. The machine may run between two steps. Registering,
// unregistering, enabling and disabling end the run first (finishWorker).
func (k *Kprobes) WorkerStep() Progress {
	w := &k.opt.worker
	if w.stepping {
		return Idle
	}
	w.stepping = true
	defer func() { w.stepping = false }()
	if w.phase == workerIdle {
		k.askHeld()
		if !w.scheduled {
			return Idle
		}
		w.scheduled = false
		w.phase = workerUndo
		k.opt.step = 0
		k.optEvent(OptWorker, nil, 0)
		return Advanced
	}
	return k.workerStep(w)
}

func (k *Kprobes) workerStep(w *worker) Progress {
	switch w.phase {
	case workerUndo:
		k.undoStep(w)
	case workerClean:
		k.clean()
		w.phase = workerWait
		k.startGrace()
	case workerWait:
		if !k.graceOver() {
			return Waiting
		}
		w.phase = workerOptimize
		k.optEvent(OptWaited, nil, 0)
	case workerOptimize:
		k.optimizeStep(w)
	case workerFree:
		k.freeCleaned()
		k.endWorker(w)
	}
	return Advanced
}

// undoStep is a step of arch_unoptimize_kprobes.
func (k *Kprobes) undoStep(w *worker) {
	o := w.op
	if o == nil {
		if o = k.opt.unoptimizing.head; o == nil {
			w.phase = workerClean
			if k.c.Optimize.FreeingNeedsUndo && !w.undone {
				w.phase = workerWait
				k.startGrace()
			}
			w.undone = false
			return
		}
		w.op = o
		k.startUnpatch(o)
	}
	if k.pokeStep(); !k.opt.poke.Done() {
		return
	}
	w.op = nil
	w.undone = true
	k.setPatched(o, false)
	o.unlink()
	k.opt.freeing.add(o)
}

// clean is the second half of do_unoptimize_kprobes.
func (k *Kprobes) clean() {
	for o := k.opt.freeing.head; o != nil; {
		next, p := o.next, o.entry
		k.point(PointFlags, p)
		p.Flags &^= FlagOptimized
		if p.Disabled() && !p.Gone() {
			k.writeOpcode(p)
		}
		if unused(p) {
			if k.table.lookup(p.Addr) == p {
				k.point(PointTable, p)
				k.table.remove(p)
			}
			k.optEvent(OptRemoved, p, p.Addr)
		} else {
			o.unlink()
			k.optEvent(OptUndone, p, p.Addr)
		}
		o = next
	}
}

// writeOpcode takes out an int3 that was left to the worker.
func (k *Kprobes) writeOpcode(p *Kprobe) {
	if err := k.pokeByte(textpoke.Disarm, p.Addr, k.under(p)); err != nil {
		k.fail(err)
	}
	k.optEvent(OptDisarmed, p, p.Addr)
}

// optimizeStep is a step of arch_optimize_kprobes.
func (k *Kprobes) optimizeStep(w *worker) {
	o := w.op
	if o == nil {
		if o = k.opt.optimizing.head; o == nil || k.disarmed || !k.opt.allowed {
			w.phase = workerFree
			return
		}
		if k.foreign(o) {
			k.dequeue(o.entry, o)
			k.hold(o.entry)
			return
		}
		w.op = o
		k.startPatch(o)
	}
	if k.pokeStep(); !k.opt.poke.Done() {
		return
	}
	w.op = nil
	o.unlink()
	k.optEvent(OptOptimized, o.entry, o.d.Addr)
}

// freeCleaned is do_free_cleaned_kprobes.
func (k *Kprobes) freeCleaned() {
	for o := k.opt.freeing.head; o != nil; {
		next, p := o.next, o.entry
		o.unlink()
		if !unused(p) {
			k.printk("WARNING: kprobe_optimizer: " + k.name(p) + " is in use again")
		} else {
			k.retryHeldBack(p)
			k.freeDetour(p)
			k.freeSlot(p)
			k.optEvent(OptFreed, p, p.Addr)
		}
		o = next
	}
}

// retryHeldBack queues the probe whose jump would overwrite a probe that is now gone.
func (k *Kprobes) retryHeldBack(gone *Kprobe) {
	if !k.c.Optimize.RetriesHeldBack {
		return
	}
	if outer := k.covering(gone.Addr); outer != nil {
		k.optimize(outer)
	}
}

// endWorker ends a run. If probes were queued meanwhile, it schedules another run.
func (k *Kprobes) endWorker(w *worker) {
	w.phase = workerIdle
	again := !k.opt.optimizing.empty() || !k.opt.unoptimizing.empty()
	if again {
		k.kick()
	}
	k.optEvent(OptWorkerEnd, nil, 0)
}

// finishWorker ends a run of the worker for a caller that wants kprobe_mutex,
// which the worker holds for its whole run. Tasks cannot run here, so a worker
// that waits for them gives the run up and starts over later. What it has
// undone stays undone; nothing is freed or optimized before a whole wait.
func (k *Kprobes) finishWorker() {
	w := &k.opt.worker
	if w.stepping {
		return
	}
	for w.phase != workerIdle {
		if k.WorkerStep() == Waiting {
			w.phase = workerIdle
			w.scheduled = true
			k.optEvent(OptGivenUp, nil, 0)
			return
		}
	}
	k.opt.step = 0
}

// Settle lets the worker run until both queues are empty, as the kernel's
// wait_for_kprobe_optimizer does. It fails with an *Unsettled where tasks have
// to run first.
func (k *Kprobes) Settle() error {
	for {
		switch k.WorkerStep() {
		case Idle:
			return nil
		case Waiting:
			return &Unsettled{Tasks: k.opt.worker.grace.tasks()}
		case Advanced:
		}
	}
}

// drain is wait_for_kprobe_optimizer within another call. When the worker waits for tasks it has
// undone all jumps that were queued for that; the other steps may come later.
func (k *Kprobes) drain() {
	if k.stepper != nil {
		k.stepper.Point(Point{Kind: PointDrain})
		return
	}
	if k.opt.optimizing.empty() && k.opt.unoptimizing.empty() {
		return
	}
	var waits *Unsettled
	if err := k.Settle(); err != nil && !errors.As(err, &waits) {
		k.fail(err)
	}
}

// Unsettled is the error of Settle while tasks are inside calls.
type Unsettled struct {
	// Tasks are the numbers of the tasks that have not scheduled since the worker's wait began.
	Tasks []int
}

// Error names the tasks.
func (e *Unsettled) Error() string {
	return fmt.Sprintf("the kprobe optimizer waits until tasks %v have scheduled", e.Tasks)
}

// Unwrap gives EAGAIN.
func (e *Unsettled) Unwrap() error { return errno.EAGAIN }

// grace is an RCU-tasks grace period: every task that was inside a call when it
// began has since given up its CPU by itself, or ended. Kernels without
// PREEMPTION wait for the CPUs instead (synchronize_sched). This machine may
// switch tasks anywhere, so it waits for the tasks there too.
type grace struct {
	holdouts []holdout
}

type holdout struct {
	task     int
	switches uint64
}

func (g *grace) tasks() []int {
	var list []int
	for _, h := range g.holdouts {
		list = append(list, h.task)
	}
	return list
}

func (k *Kprobes) startGrace() {
	g := &k.opt.worker.grace
	g.holdouts = g.holdouts[:0]
	for task := 0; ; task++ {
		n, inside, ok := k.opt.patcher.TaskSwitches(task)
		if !ok {
			break
		}
		if inside {
			g.holdouts = append(g.holdouts, holdout{task, n})
		}
	}
	k.optEvent(OptWait, nil, 0)
}

func (k *Kprobes) graceOver() bool {
	g := &k.opt.worker.grace
	kept := g.holdouts[:0]
	for _, h := range g.holdouts {
		if n, inside, ok := k.opt.patcher.TaskSwitches(h.task); ok && inside && n == h.switches {
			kept = append(kept, h)
		}
	}
	g.holdouts = kept
	return len(kept) == 0
}

// noTaskInside: no CPU handles a hit and no task is in a call, so no task is in a detour buffer.
func (k *Kprobes) noTaskInside() bool {
	if k.stepper != nil {
		return true // the worker has waited for it
	}
	for task := 0; k.quiet(); task++ {
		_, inside, ok := k.opt.patcher.TaskSwitches(task)
		if !ok {
			return true
		}
		if inside {
			return false
		}
	}
	return false
}
