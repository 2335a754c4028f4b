package guestfast

import (
	"maps"
	"slices"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// The words of an instance beside those that kprobes documents (fastpath.S).
const (
	riRet   = 0
	riFrame = 8
	riNext  = 24
)

// calls is what the routes of return probes need: instances that are lent to
// guest code, free or pending there.
type calls struct {
	// heads is the table of the tasks' newest instances, 0 where guest code has no
	// returns. none stands for no instance: it is of no frame, and its own next.
	heads, none x86.Addr
	// entry and asking are pre_handler_kretprobe without an entry handler and with
	// one, nothing is a handler that does nothing.
	entry, asking, nothing x86.Addr
	// lent are the instances by their guest memory, pools where their free lists
	// are.
	lent  map[x86.Addr]loan
	pools map[x86.Addr]bool
}

type loan struct {
	instance *kprobes.Instance
	probe    *kprobes.Kprobe
}

// maxTasks is how many tasks a machine can have.
const maxTasks = 256

// callable reports whether guest code can do all that an entry and a return do
// for a return probe.
func (p *path) callable(rp *kprobes.Kretprobe) bool {
	return p.calls.heads != 0 &&
		(rp.EntryHandler == nil || rp.EntryCode != 0) && (rp.Handler == nil || rp.HandlerCode != 0)
}

// lend gives guest code the free instances of a return probe.
func (p *path) lend(rp *kprobes.Kretprobe) {
	rec := rp.KP.Record
	p.set(rec+recCode, uint64(p.calls.entry))
	if rp.EntryCode != 0 && p.in.Config().Kret.EntryHandler {
		p.set(rec+recCode, uint64(p.calls.asking))
	}
	p.set(rec+recEntry, uint64(rp.EntryCode))
	p.set(rec+recReturn, uint64(p.calls.nothing))
	if rp.HandlerCode != 0 {
		p.set(rec+recReturn, uint64(rp.HandlerCode))
	}
	if !p.calls.pools[rec] {
		p.set(rec+recFree, uint64(p.calls.none))
		p.calls.pools[rec] = true
	}
	p.lendFree(rp)
}

// lendFree reports whether any is lent.
func (p *path) lendFree(rp *kprobes.Kretprobe) bool {
	list, rec := p.in.Lend(rp), rp.KP.Record
	for _, i := range slices.Backward(list) { // the order of the list stays
		node := p.in.Node(i)
		p.calls.lent[node] = loan{i, &rp.KP}
		p.set(node+riNext, p.get(rec+recFree))
		p.set(rec+recFree, uint64(node))
	}
	return len(list) > 0
}

// takePending makes the subsystem's what a task has pending in guest memory, but
// for the newest where its handler runs.
func (p *path) takePending(task int) {
	if task < 0 || task >= maxTasks {
		return
	}
	link := p.calls.heads + x86.Addr(8*task)
	if newest := x86.Addr(p.get(link)); p.runs(newest) {
		link = newest + riNext
	}
	var list []x86.Addr
	for node := x86.Addr(p.get(link)); node != p.calls.none; node = x86.Addr(p.get(node + riNext)) {
		if _, ok := p.calls.lent[node]; !ok || len(list) == len(p.calls.lent) {
			p.damaged(node, task)
			break
		}
		list = append(list, node)
	}
	if len(list) == 0 {
		return
	}
	p.set(link, uint64(p.calls.none))
	for _, node := range slices.Backward(list) {
		i := p.calls.lent[node].instance
		delete(p.calls.lent, node)
		p.in.Pend(i, task, x86.Addr(p.get(node+riRet)), x86.Addr(p.get(node+riFrame))&^1)
	}
}

func (p *path) damaged(node x86.Addr, task int) {
	p.in.Fail(&kprobes.Bug{
		Text:  "the list of pending calls in guest memory is damaged",
		Probe: "return probes", Addr: node, CPU: p.m.CPU(), Task: task,
	})
}

// takeAllBack makes everything that is lent the subsystem's again. While guest
// code runs a handler it may have an instance in hand: then only what stands in
// its lists comes back. Else the rest is free too: a handler had it in hand whose
// task has ended.
func (p *path) takeAllBack() {
	c := &p.calls
	for task := range maxTasks {
		if len(c.lent) == 0 {
			break
		}
		p.takePending(task)
	}
	for rec := range c.pools {
		p.takeFree(rec)
	}
	if !p.runs(0) {
		p.takeBack(slices.Sorted(maps.Keys(c.lent)))
	}
	if len(c.lent) == 0 {
		clear(c.pools)
	}
}

// takeFree takes the free instances of a pool back.
func (p *path) takeFree(rec x86.Addr) {
	var list []x86.Addr
	node := x86.Addr(p.get(rec + recFree))
	for len(list) < len(p.calls.lent) {
		if _, ok := p.calls.lent[node]; !ok {
			break
		}
		list = append(list, node)
		node = x86.Addr(p.get(node + riNext))
	}
	p.set(rec+recFree, uint64(node))
	p.takeBack(list)
}

// takeBack makes instances free, so that the first is the next that is taken.
func (p *path) takeBack(list []x86.Addr) {
	for _, node := range slices.Backward(list) {
		if l, ok := p.calls.lent[node]; ok {
			delete(p.calls.lent, node)
			p.in.TakeBack(l.instance)
		}
	}
}

// missed is for an entry that guest code has no instance for. One that was
// pending in Go when the others were lent may be free by now; else the return is
// missed. The argument becomes whether to try again.
func (p *path) missed(_ x86.Addr, _ *x86.PtRegs) {
	arg := &p.local[p.m.CPU()][wordArg]
	rec := x86.Addr(*arg)
	probe := p.probes[rec]
	*arg = 0
	if probe == nil || probe.Record != rec || p.in.Entry(probe) == nil {
		return // it was unregistered meanwhile
	}
	rp := p.in.Kretprobe(probe)
	if p.lendFree(rp) {
		*arg = 1
		return
	}
	rp.Nmissed++
}
