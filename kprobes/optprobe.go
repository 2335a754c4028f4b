package kprobes

import (
	"fmt"

	"kprobelab/errno"
	"kprobelab/kprobes/textpoke"
	"kprobelab/optimizer"
	"kprobelab/x86"
)

// Jump optimization (docs/spec 4). An aggregator whose detour buffer could be
// prepared is in one of these states:
//
//	state                     OPTIMIZED  list          text at A
//	plain                     0          none          cc + the original tail
//	queued for optimizing     1          optimizing    cc + the original tail
//	optimized                 1          none          e9 rel32
//	queued for unoptimizing   1 (a)      unoptimizing  e9 rel32
//	unoptimized by force      0          freeing       cc + the original tail
//
//	        optimize()            worker               unoptimize()
//	plain ------------> queued ------------> optimized ------------> queued to undo
//	  ^ <------------------+                  |  ^                      |      |
//	  |    unoptimize()                       |  +----------------------+      |
//	  | <-------------------------------------+        optimize()              |
//	  |          unoptimize(force)                                      worker |
//	  +------------------------------------------------------------------------+
//
//	(a) 0 in 4.4, which clears the flag when undoing is asked for.
//
// An aggregator that is disabled and has no members is unused: the worker
// removes it and frees its buffer. Only the functions of optqueue.go and
// optworker.go change a state.

// Patcher is the set of methods beyond Machine that jump optimization needs.
type Patcher interface {
	// PokeTextNoSync changes text. Every CPU keeps the bytes that it has already fetched
	// (text_poke).
	PokeTextNoSync(addr x86.Addr, b []byte) error
	// SyncCore makes one CPU see all text that was poked (the sync-core IPI).
	SyncCore(cpu int)
	// TaskSwitches returns how many times a task has given up its CPU voluntarily, and whether it
	// is inside a call and not asleep. ok is false past the last task.
	TaskSwitches(task int) (n uint64, inside, ok bool)
}

// optimized is the part of struct optimized_kprobe that an aggregator adds to
// its kprobe, with its detour buffer (optinsn).
type optimized struct {
	entry *Kprobe
	// on is the list that holds it, nil if none does; prev and next link it.
	on         *optList
	prev, next *optimized

	// d is the detour buffer as built; d.Size is 0 if none is prepared.
	d     optimizer.Detour
	page  *slotPage
	index int
	// handle is the number that the buffer passes to the callback (setHandle).
	handle uint64
	// saved are the original bytes at A+1 to A+4, from when the jump was written (copied_insn).
	saved [jumpTail]byte
	// patched: a displacement stands at A+1 to A+4.
	patched bool
}

const (
	jumpSize = x86.Rel32Size
	jumpTail = jumpSize - 1
)

// opt returns the optimizer's part of an aggregator, nil if it has none.
func (p *Kprobe) opt() *optimized {
	if p.aggregate == nil {
		return nil
	}
	return p.aggregate.opt
}

// ready is kprobe_optready: whether a detour buffer is prepared.
func (o *optimized) ready() bool { return o != nil && o.d.Size != 0 }

// queued is kprobe_queued: whether it is on any list.
func (o *optimized) queued() bool { return o != nil && o.on != nil }

// within reports whether an address is in the instructions that the detour
// buffer has copies of (arch_within_optimized_kprobe).
func (o *optimized) within(a x86.Addr) bool {
	return a.In(o.entry.Addr, o.entry.Addr.Add(int64(o.d.Size)))
}

// disarmedEntry is kprobe_disarmed: disabled, and on no list of the worker.
func disarmedEntry(p *Kprobe) bool { return p.Disabled() && !p.opt().queued() }

// unused is kprobe_unused: an aggregator that waits to be removed.
func unused(p *Kprobe) bool {
	return p.aggregate != nil && p.Disabled() && len(p.aggregate.members) == 0
}

// optState is the optimizer of one machine.
type optState struct {
	// patcher is nil in kernels without the optimizer, and until
	// InitOptprobes.
	patcher Patcher
	// allowed is kprobes_allow_optimization.
	allowed bool
	// callback is the guest's optimized_callback.
	callback x86.Addr
	slots    slotCache

	optimizing, unoptimizing, freeing optList

	worker worker
	// text changes the machine's text in steps; poke is the change under way.
	text textpoke.Poker
	poke *textpoke.Run
	// patched counts the addresses that a displacement follows.
	patched int

	observe func(OptEvent)
	step    int
}

// InitOptprobes is the initcall that allows jump optimization (init_optprobes,
// optimize_all_kprobes). Until it is called no probe is optimized, and no detour buffer is made. It
// does nothing if the kernel has no optimizer, or if it was called before. The error is ENOSYS if
// the machine is no Patcher, ENOMEM if it has no room for the callback.
func (k *Kprobes) InitOptprobes() error {
	if !k.optprobes() || k.opt.patcher != nil {
		return nil
	}
	patcher, ok := k.m.(Patcher)
	if !ok {
		return fmt.Errorf("jump optimization: the machine cannot patch text in steps: %w", errno.ENOSYS)
	}
	callback, err := k.placeCallback()
	if err != nil {
		return fmt.Errorf("jump optimization: %w", err)
	}
	o := &k.opt
	o.patcher, o.callback = patcher, callback
	o.slots = slotCache{m: k.m, size: optimizer.SlotSize(k.c), name: "kprobe_optinsn_page", quiet: k.noTaskInside}
	o.optimizing.name, o.unoptimizing.name, o.freeing.name = "optimizing", "unoptimizing", "freeing"
	// The kernel has prepared the buffers of the probes that are there
	// already; here they are prepared now.
	k.table.each(func(p *Kprobe) { k.prepareEarly(p) })
	return k.SetOptimization(true)
}

// prepareEarly is for a probe that was registered before the initcall.
func (k *Kprobes) prepareEarly(p *Kprobe) {
	switch {
	case p.aggregate == nil:
		k.tryToOptimize(p)
	case !p.OnFtrace() && !p.Gone():
		k.prepareOptimized(p)
	}
}

// optprobes: this kernel has the optimizer (CONFIG_OPTPROBES).
func (k *Kprobes) optprobes() bool {
	return k.c.Optprobes()
}

// Detour is the detour buffer of the address that a probe is registered at,
// and whether one is prepared. It is made whether or not the probe is queued.
func (k *Kprobes) Detour(at x86.Addr) (optimizer.Detour, bool) {
	p := k.table.lookup(at)
	if p == nil || !p.opt().ready() {
		return optimizer.Detour{}, false
	}
	return p.opt().d, true
}

// Queue names the optimizer's list that the probe at an address is on:
// "optimizing", "unoptimizing" or "freeing"; empty for none.
func (k *Kprobes) Queue(at x86.Addr) string {
	p := k.table.lookup(at)
	if p == nil || !p.opt().queued() {
		return ""
	}
	return p.opt().on.name
}

// optList is a list of aggregators, newest first, as list_add makes it.
type optList struct {
	name string
	head *optimized
	n    int
}

func (l *optList) empty() bool { return l.head == nil }

// add is list_add.
func (l *optList) add(o *optimized) {
	o.on, o.prev, o.next = l, nil, l.head
	if l.head != nil {
		l.head.prev = o
	}
	l.head = o
	l.n++
}

// unlink is list_del_init; it does nothing to an object that is on no list.
func (o *optimized) unlink() {
	if o.on == nil {
		return
	}
	if o.next != nil {
		o.next.prev = o.prev
	}
	if o.prev != nil {
		o.prev.next = o.next
	} else {
		o.on.head = o.next
	}
	o.on.n--
	o.on, o.prev, o.next = nil, nil, nil
}
