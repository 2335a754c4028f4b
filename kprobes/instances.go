package kprobes

import (
	"kprobelab/kprobes/pool"
	"kprobelab/x86"
)

// Instance is struct kretprobe_instance: one call of a probed function that
// has not returned yet.
type Instance struct {
	// RetAddr is the return address that the function was called with. It is
	// the trampoline's address where an older return probe of the function
	// shares the frame (docs/spec 5.5, "Several return probes on one function").
	RetAddr x86.Addr
	// Data is DataSize bytes for the handlers, zeroed when the probe is
	// registered and not between uses.
	Data []byte
	// Task is the number of the task that made the call.
	Task int

	// frame is the stack slot that held the return address.
	frame x86.Addr
	pool  *instancePool
	// node is the instance in guest memory, 0 where its probe has no handlers
	// in guest code.
	node x86.Addr
	// account has the call, nil while the instance is free, and without FollowPools.
	account *pool.Account[int]
	// through is the address to return to if that is not RetAddr: the trampoline of the booted kernel's own return probe.
	through x86.Addr
	// next links the pool's free list or the task's pending list.
	next *Instance
}

// Kretprobe is the return probe that the call belongs to (get_kretprobe), nil
// once that has been unregistered.
func (i *Instance) Kretprobe() *Kretprobe { return i.pool.owner }

// recycle gives an instance back to its pool.
func (k *Kprobes) recycle(i *Instance) {
	if i.pool.freed {
		k.useFreed(i.pool)
	}
	i.gives()
	i.next = i.pool.free
	i.pool.free = i
}

// useFreed reports a use of freed instances to the Stepper.
func (k *Kprobes) useFreed(p *instancePool) {
	if k.stepper != nil && p.owner != nil {
		k.stepper.Point(Point{Kind: PointFreed, Probe: &p.owner.KP})
	}
}

// instancePool holds a return probe's instances. It stays after the probe as
// long as instances are pending.
type instancePool struct {
	// owner is nil once the probe is unregistered.
	owner *Kretprobe
	free  *Instance
	all   []Instance
	// freed: the kernel has given the instances back to its allocator.
	freed bool
	// record and nodes are the guest memory of a probe with handlers there.
	record, nodes x86.Addr
}

func newInstancePool(rp *Kretprobe) *instancePool {
	pool := &instancePool{owner: rp, all: make([]Instance, rp.MaxActive)}
	data := make([]byte, rp.MaxActive*rp.DataSize)
	for n := range pool.all {
		i := &pool.all[n]
		i.pool = pool
		i.Data = data[n*rp.DataSize : (n+1)*rp.DataSize : (n+1)*rp.DataSize]
		i.next, pool.free = pool.free, i
	}
	return pool
}

// take returns a free instance of a pool, nil if there is none.
func (k *Kprobes) take(p *instancePool) *Instance {
	if p.freed {
		k.useFreed(p)
	}
	i := p.free
	if i != nil {
		p.free, i.next = i.next, nil
	}
	return i
}

// push puts an instance at the head of its task's list.
func (k *Kprobes) push(i *Instance) {
	for i.Task >= len(k.kret.pending) {
		k.kret.pending = append(k.kret.pending, nil)
	}
	i.next = k.kret.pending[i.Task]
	k.kret.pending[i.Task] = i
}

// head is the newest pending instance of a task.
func (k *Kprobes) head(task int) *Instance {
	if task < 0 || task >= len(k.kret.pending) {
		return nil
	}
	return k.kret.pending[task]
}

// oldestAt is the oldest pending instance of a task on a stack slot, nil if there is none.
func (k *Kprobes) oldestAt(task int, frame x86.Addr) (oldest *Instance) {
	for i := k.head(task); i != nil; i = i.next {
		if i.frame == frame {
			oldest = i
		}
	}
	return oldest
}

// recycleThrough unlinks a task's instances up to and including last, except those
// that a return through frame passes over.
func (k *Kprobes) recycleThrough(task int, last *Instance, frame x86.Addr) {
	link := &k.kret.pending[task]
	for {
		i := *link
		if k.passesOver(i, frame) {
			link = &i.next
			continue
		}
		*link = i.next
		k.recycle(i)
		if i == last {
			return
		}
	}
}

// recycleTask unlinks all of a task's instances.
func (k *Kprobes) recycleTask(task int) {
	for i := k.head(task); i != nil; {
		next := i.next
		k.recycle(i)
		i = next
	}
	if k.head(task) != nil {
		k.kret.pending[task] = nil
	}
	if k.pools != nil {
		k.forgetLacking(func(c *lackingCall) bool { return c.task == task })
	}
}

// Pending counts a task's calls that return probes track.
func (k *Kprobes) Pending(task int) int {
	n := 0
	for i := k.head(task); i != nil; i = i.next {
		n++
	}
	return n
}

// Cursor remembers how far an unwinder has come in a task's instances; the
// zero value starts at the newest.
type Cursor struct {
	last *Instance
}

// FindReturnAddress tells an unwinder the true return address that the
// trampoline hides in the stack slot at frame, or 0 (rethook_find_ret_addr,
// kretprobe_find_ret_addr; docs/spec 5.6). The task must not run meanwhile.
func (k *Kprobes) FindReturnAddress(task int, frame x86.Addr, cursor *Cursor) x86.Addr {
	if cursor == nil {
		cursor = &Cursor{}
	}
	i := k.head(task)
	if cursor.last != nil {
		i = cursor.last.next
	}
	for ; i != nil; i = i.next {
		cursor.last = i
		if i.RetAddr != k.kret.trampoline && i.frame == frame {
			return i.RetAddr
		}
	}
	return 0
}

// Trampoline is the address that return probes put in the place of return
// addresses; 0 while none was ever registered.
func (k *Kprobes) Trampoline() x86.Addr { return k.kret.trampoline }

// EachInstance calls fn for every instance of the probe's pool; used tells that it follows a call
// that has not returned. fn must not keep the instance.
func (rp *Kretprobe) EachInstance(fn func(i *Instance, used bool)) {
	if rp.pool == nil {
		return
	}
	free := map[*Instance]bool{}
	for i := rp.pool.free; i != nil; i = i.next {
		free[i] = true
	}
	for n := range rp.pool.all {
		i := &rp.pool.all[n]
		fn(i, !free[i])
	}
}
