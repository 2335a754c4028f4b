package kprobes

import "kprobelab/x86"

// OptKind is the kind of a step of the optimizer.
type OptKind int

// The kinds.
const (
	// OptQueued: a probe was put on the optimizing list.
	OptQueued OptKind = iota
	// OptQueuedUndo: a probe was put on the unoptimizing list.
	OptQueuedUndo
	// OptDequeued: it was taken off a list before the worker came to it.
	OptDequeued
	// OptKept: it was taken off the unoptimizing list and stays optimized.
	OptKept
	// OptForced: somebody undoes it without waiting for the worker.
	OptForced
	// OptFreeing: it was put on the freeing list without the worker.
	OptFreeing
	// OptWorker: the worker begins.
	OptWorker
	// OptPokeInt3: cc is written at the probed address.
	OptPokeInt3
	// OptPokeTail: bytes 1 to 4 are written.
	OptPokeTail
	// OptPokeFirst: the first byte is written.
	OptPokeFirst
	// OptPokeSync: every CPU has seen the written bytes.
	OptPokeSync
	// OptPokeDone: the announcement of the change is withdrawn.
	OptPokeDone
	// OptPokeStopped: all 5 bytes were written while no CPU ran.
	OptPokeStopped
	// OptDisarmed: the worker took the int3 out.
	OptDisarmed
	// OptUndone: the worker has undone a probe.
	OptUndone
	// OptRemoved: an aggregator without members left the hash table.
	OptRemoved
	// OptWait: the worker waits until every task has scheduled.
	OptWait
	// OptWaited: every task has.
	OptWaited
	// OptOptimized: the jump is in place.
	OptOptimized
	// OptFreed: buffer and slot are free.
	OptFreed
	// OptWorkerEnd: the worker ends.
	OptWorkerEnd
	// OptGivenUp: the worker starts over.
	OptGivenUp
	// OptAllowed and OptForbidden: the sysctl was changed.
	OptAllowed
	OptForbidden
	// NumOptKinds is the number of kinds.
	NumOptKinds
)

var optNames = [NumOptKinds]string{
	"queued", "queued-undo", "dequeued", "kept", "forced", "freeing", "worker",
	"poke-int3", "poke-tail", "poke-first", "poke-sync", "poke-done", "poke-stopped",
	"disarmed", "undone", "removed", "wait", "waited", "optimized", "freed",
	"worker-end", "given-up", "allowed", "forbidden",
}

// String is a short word for the kind.
func (o OptKind) String() string { return optNames[o] }

// OptEvent is one step of the optimizer.
type OptEvent struct {
	// Step counts from 1 in every run of the worker, and in the calls between
	// two runs.
	Step int
	Kind OptKind
	// Probe is the aggregator, nil for a step that concerns no single probe.
	Probe *Kprobe
	// Addr is the probed address; of OptOptimized the detour buffer.
	Addr x86.Addr
}

// ObserveOptimizer calls fn after every step of the optimizer, until it is
// called with nil. fn may let the machine run, as other CPUs may run between
// the steps; it must not register, unregister, enable or disable probes.
func (k *Kprobes) ObserveOptimizer(fn func(OptEvent)) { k.opt.observe = fn }

func (k *Kprobes) optEvent(kind OptKind, p *Kprobe, at x86.Addr) {
	if k.opt.observe == nil {
		return
	}
	k.opt.step++
	k.opt.observe(OptEvent{Step: k.opt.step, Kind: kind, Probe: p, Addr: at})
}
