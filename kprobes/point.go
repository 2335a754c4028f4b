package kprobes

import "kprobelab/x86"

// PointKind is the kind of a step that other CPUs can notice, or that depends on their steps.
type PointKind uint8

// The kinds. Writes of text and synchronizations are the Patcher's own.
const (
	// PointLookup: an int3 is looked up in the table.
	PointLookup PointKind = iota
	// PointResume: the pre handlers have run; next the flags and the slot decide where the CPU
	// continues.
	PointResume
	// PointTable: the hash table is changed.
	PointTable
	// PointMembers: the list of an aggregate's members is changed.
	PointMembers
	// PointFlags: DISABLED or OPTIMIZED is changed.
	PointFlags
	// PointAnnounce: a change of text is announced, or that is withdrawn.
	PointAnnounce
	// PointGrace: an RCU grace period has to pass.
	PointGrace
	// PointDrain: the caller waits until the optimizer's worker has finished.
	PointDrain
	// PointFree: a slot, a detour buffer or an object is freed.
	PointFree
	// PointFreed: a freed object is used: a detour buffer, or the instance of Probe.
	PointFreed
	// PointModule: the module of an address is looked at again.
	PointModule
	// NumPointKinds is the number of kinds.
	NumPointKinds
)

var pointNames = [NumPointKinds]string{
	"lookup", "resume", "table", "members", "flags", "announce", "grace", "drain", "free", "freed", "module",
}

// String is a short word for the kind.
func (k PointKind) String() string { return pointNames[k] }

// Point is a step that is about to be taken.
type Point struct {
	Kind PointKind
	// Probe is the table entry or member concerned; nil if none is.
	Probe *Kprobe
	// Addr is the probed address. For PointFree it is the slot's address, if the slot may be used
	// again at once, else 0.
	Addr x86.Addr
}

// Stepper is an optional interface of a machine that lets several CPUs run inside this package in
// turn. Point is called before each such step, and returns when the step may be taken. The handlers
// of two CPUs then overlap, and grace periods are waited for, not assumed.
//
// The machine has to ensure that no two callers are inside functions that register, unregister,
// enable or disable probes, nor inside WorkerStep, from the worker's first step to its last
// (kprobe_mutex).
type Stepper interface {
	Point(Point)
}

func (k *Kprobes) point(kind PointKind, p *Kprobe) {
	if k.stepper != nil {
		k.stepper.Point(Point{Kind: kind, Probe: p, Addr: p.Addr})
	}
}

// freedObject reports to the Stepper that an aggregator, or a detour buffer with the callback's
// argument, will be freed. A task may still be in the buffer: it is used again only after another
// wait.
func (k *Kprobes) freedObject(entry *Kprobe) {
	if k.stepper != nil {
		k.stepper.Point(Point{Kind: PointFree, Probe: entry})
	}
}

// grace is synchronize_rcu. Without a Stepper the grace period has passed: no other CPU runs.
func (k *Kprobes) grace() {
	if k.stepper != nil {
		k.stepper.Point(Point{Kind: PointGrace})
	}
}
