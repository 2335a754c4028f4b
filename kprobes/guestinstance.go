package kprobes

import (
	"kprobelab/x86"
)

// The instances of a return probe whose handlers are guest code are in guest
// memory, and so is the list of those that a task has pending: the head by its
// number. That list is always newer than the pending list here. Whoever needs
// all of a task's instances takes them over first (takeOver), and guest code,
// which then finds none, leaves the return to Go.

// An instance in guest memory is the first argument of its handlers.
const (
	riRet    = 0  // the return address
	riFrame  = 8  // the stack slot that held it, odd where an older one shares it
	riRecord = 16 // the return probe's record
	riNext   = 24 // the next free one, or the task's next
	// InstanceData is the offset in bytes of an instance's data.
	InstanceData = 32
)

type guestPools struct {
	// heads is the table of the tasks' newest instances, none what stands
	// there for no instance: one of no frame.
	heads, none x86.Addr
	// byRecord are the pools, entry and asking what the routes of their
	// probes call, and nothing a handler that does nothing.
	byRecord               map[x86.Addr]*instancePool
	entry, asking, nothing x86.Addr
}

// guestTasks is how many tasks a machine can have.
const guestTasks = 256

// guestReturns gives a return probe with handlers in guest code the Go
// functions that call them, and a record.
func (k *Kprobes) guestReturns(rp *Kretprobe) error {
	rp.KP.Record = 0 // each pool has one of its own
	if rp.HandlerCode == 0 && rp.EntryCode == 0 {
		return nil
	}
	if err := k.makeRecord(&rp.KP); err != nil {
		return err
	}
	if err := k.placeReturns(); err != nil {
		return noGuest(&rp.KP, err)
	}
	if rp.HandlerCode != 0 {
		rp.Handler = k.guestReturn
	}
	if rp.EntryCode != 0 {
		rp.EntryHandler = k.guestEntry
	}
	return nil
}

func (k *Kprobes) guestReturn(i *Instance, regs *x86.PtRegs) int {
	rp := i.pool.owner
	return k.callGuest(&rp.KP, "handler", rp.HandlerCode, i.node, regs)
}

func (k *Kprobes) guestEntry(i *Instance, regs *x86.PtRegs) int {
	rp := i.pool.owner
	return k.callGuest(&rp.KP, "entry_handler", rp.EntryCode, i.node, regs)
}

// placeReturns puts what the routes of return probes call into guest memory,
// and has the trampoline call returnCode.
func (k *Kprobes) placeReturns() error {
	g := &k.guest.pools
	if g.heads != 0 {
		return nil
	}
	none, err := k.guest.m.Alloc(InstanceData)
	if err != nil {
		return err
	}
	heads, err := k.guest.m.Alloc(8 * guestTasks)
	if err != nil {
		return err
	}
	for task := range guestTasks {
		k.setGuestWord(heads+x86.Addr(8*task), uint64(none))
	}
	g.none, g.byRecord = none, map[x86.Addr]*instancePool{}
	if g.nothing, err = k.placeGuest("kretprobe_no_handler", []gpart{{code: []byte{0x31, 0xc0, 0xc3}}}, nil); err != nil {
		return err
	}
	if err := k.placeEntries(heads); err != nil {
		return err
	}
	g.heads = heads
	return nil
}

func (k *Kprobes) placeEntries(heads x86.Addr) error {
	g := &k.guest.pools
	f := k.fills(heads, 0)
	out, err := k.m.Callout("kretprobe_missed.out", k.guestMissed)
	if err != nil {
		return err
	}
	f[fillMissedGo] = out
	if f[fillMissed], err = k.placeGuest("kretprobe_missed", missedCode, f); err != nil {
		return err
	}
	entry := append(append([]gpart(nil), entryCode...), storeCode...)
	if g.entry, err = k.placeGuest("pre_handler_kretprobe", entry, f); err != nil {
		return err
	}
	f[fillStore] = g.entry.Add(int64(len(place(entryCode, 0, f))))
	g.asking, err = k.placeGuest("pre_handler_kretprobe.entry_handler", askingCode, f)
	if err != nil || k.c.Step.HandlerResets || !k.reachable() || k.c.Kret.Rethook == k.c.Kret.HandlerIPIsTrampoline {
		return err
	}
	code, parts := plainCode, plainParts
	if k.c.Kret.Rethook {
		code, parts = rethookCode, rethookParts
	}
	_, name := k.trampolineNames()
	callback, err := k.placeGuest(name+".guest", code, k.fills(heads, k.kret.callout))
	if err != nil {
		return err
	}
	return k.m.PokeText(k.kret.trampoline, assemble(parts, k.kret.trampoline, callback))
}

// guestMissed counts a return that is missed; the record is in orig_ax.
func (k *Kprobes) guestMissed(_ x86.Addr, regs *x86.PtRegs) {
	if p := k.guest.records[x86.Addr(regs.OrigAX)]; p != nil && p.kret != nil {
		p.kret.Nmissed++
	}
	regs.OrigAX = ^uint64(0)
}

// placeInstances puts a pool's instances into guest memory, all of them free.
// The one behind them is its own next, which ends the free list.
func (k *Kprobes) placeInstances(rp *Kretprobe) error {
	if rp.HandlerCode == 0 && rp.EntryCode == 0 {
		return nil
	}
	pool := rp.pool
	size := (InstanceData + rp.DataSize + 7) &^ 7
	at, err := k.guest.m.Alloc(size * (rp.MaxActive + 1))
	if err != nil {
		return noGuest(&rp.KP, err)
	}
	pool.record, pool.nodes, pool.nodeSize = rp.KP.Record, at, size
	for n := range rp.MaxActive + 1 {
		node := at + x86.Addr(n*size)
		if n < rp.MaxActive {
			pool.all[n].node = node
		}
		next := at + x86.Addr(min(n+1, rp.MaxActive)*size)
		k.setGuestWord(node+riNext, uint64(next))
		k.setGuestWord(node+riRecord, uint64(pool.record))
	}
	k.setGuestWord(pool.record+recFree, uint64(at))
	code := k.guest.pools.entry
	if rp.EntryCode != 0 && k.c.Kret.EntryHandler {
		code = k.guest.pools.asking
	}
	k.setGuestWord(pool.record+recCode, uint64(code))
	k.setGuestWord(pool.record+recReturn, uint64(k.handlerCode(rp)))
	k.setGuestWord(pool.record+recEntry, uint64(rp.EntryCode))
	k.guest.pools.byRecord[pool.record] = pool
	return nil
}

// handlerCode is what a return runs.
func (k *Kprobes) handlerCode(rp *Kretprobe) x86.Addr {
	if rp.HandlerCode == 0 {
		return k.guest.pools.nothing
	}
	return rp.HandlerCode
}

// orphan takes a pool's probe away: what is pending returns without a handler.
func (k *Kprobes) orphan(p *instancePool) {
	p.owner = nil
	if p.record != 0 {
		k.setGuestWord(p.record+recReturn, uint64(k.guest.pools.nothing))
	}
}

// freeInstances gives back the guest memory of a pool of which nothing is
// pending. One that has something pending is needed until that has returned,
// and is kept: its memory goes with the machine.
func (k *Kprobes) freeInstances(p *instancePool) {
	if p.record == 0 {
		return
	}
	for range p.all {
		if k.takeNode(p) == nil {
			return
		}
	}
	delete(k.guest.pools.byRecord, p.record)
	delete(k.guest.records, p.record)
	k.guest.m.Free(p.nodes)
	k.guest.m.Free(p.record)
	p.record = 0
}

// at is the instance of a node, nil where a guest has written something else
// into a list.
func (p *instancePool) at(node x86.Addr) *Instance {
	n := node.Sub(p.nodes)
	if n < 0 || n%int64(p.nodeSize) != 0 || n/int64(p.nodeSize) >= int64(len(p.all)) {
		return nil
	}
	return &p.all[n/int64(p.nodeSize)]
}

func (k *Kprobes) takeNode(p *instancePool) *Instance {
	i := p.at(x86.Addr(k.guestWord(p.record + recFree)))
	if i != nil {
		k.setGuestWord(p.record+recFree, k.guestWord(i.node+riNext))
	}
	return i
}

func (k *Kprobes) recycleNode(i *Instance) {
	k.setGuestWord(i.node+riNext, k.guestWord(i.pool.record+recFree))
	k.setGuestWord(i.pool.record+recFree, uint64(i.node))
}

func (k *Kprobes) headAt(task int) x86.Addr { return k.guest.pools.heads + x86.Addr(8*task) }

// pushNode is storeCode for a hit that came to Go.
func (k *Kprobes) pushNode(i *Instance) {
	frame := uint64(i.frame)
	if i.RetAddr == k.kret.trampoline {
		frame |= 1
	}
	head := k.headAt(i.Task)
	k.setGuestWord(i.node+riRet, uint64(i.RetAddr))
	k.setGuestWord(i.node+riFrame, frame)
	k.setGuestWord(i.node+riNext, k.guestWord(head))
	k.setGuestWord(head, uint64(i.node))
}

// takeOver moves what guest memory has of a task's pending instances to the
// front of the list here.
func (k *Kprobes) takeOver(task int) {
	g := &k.guest.pools
	if task < 0 || task >= guestTasks {
		return
	}
	node := x86.Addr(k.guestWord(k.headAt(task)))
	if node == g.none {
		return
	}
	for task >= len(k.kret.pending) {
		k.kret.pending = append(k.kret.pending, nil)
	}
	older, last := k.kret.pending[task], &k.kret.pending[task]
	for left := maxInstances; node != g.none; left-- {
		i := k.pendingNode(node)
		if i == nil || left == 0 {
			k.fail(&Bug{Text: "the list of pending calls in guest memory is damaged", Probe: "return probes", Addr: node, CPU: k.m.CPU(), Task: task})
			break
		}
		i.Task, i.RetAddr = task, x86.Addr(k.guestWord(node+riRet))
		i.frame = x86.Addr(k.guestWord(node+riFrame)) &^ 1
		*last, last = i, &i.next
		node = x86.Addr(k.guestWord(node + riNext))
	}
	*last = older
	k.setGuestWord(k.headAt(task), uint64(g.none))
}

// pendingNode is the instance of a node in a task's list.
func (k *Kprobes) pendingNode(node x86.Addr) *Instance {
	if pool := k.guest.pools.byRecord[x86.Addr(k.guestWord(node+riRecord))]; pool != nil {
		return pool.at(node)
	}
	return nil
}
