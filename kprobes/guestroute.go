package kprobes

import (
	"fmt"

	"kprobelab/x86"
)

// A route leads a hit to a handler in guest code without Go. One is learned by
// the hit that comes to Go first: a single probe at its place, enabled, with a
// pre handler in guest code or a return probe whose instances are in guest
// memory. All are forgotten when anything about any probe changes.

type guestRoutes struct {
	// detours and sites are the tables, 0 until the functions are placed.
	detours, sites x86.Addr
	// callback is optimized_callback with routes, which detour buffers built
	// from now on call.
	callback x86.Addr
	// chain and chainAll are aggr_pre_handler and opt_pre_handler, chains the
	// records for them, and room where these are.
	chain, chainAll x86.Addr
	chains          map[chainKey]x86.Addr
	room            x86.Addr
	used            int
	// learned are the pairs that are in use.
	learned map[x86.Addr]bool
}

type chainKey struct {
	entry *Kprobe
	by    hitBy
}

// chainRoom is the room for chains in bytes. They are made in the middle of
// runs, whose memory a caller may put back, and so not allocated there.
const chainRoom = 1 << 16

// reachable: guest code of ours reaches a CPU's page, and is not torn apart.
func (k *Kprobes) reachable() bool {
	local := int64(k.guest.m.LocalOffset())
	return k.guest.m.SteadyBlocks() && local == int64(int32(local))
}

// mayLearn: nobody wants to see the steps of every hit.
func (k *Kprobes) mayLearn() bool { return k.observe == nil }

// hitBy is how a hit comes that a route is for.
type hitBy struct {
	// ignores: what the handlers return is ignored, as behind a jump.
	ignores bool
	// nmi: the hit counts as an NMI, as an int3 may.
	nmi bool
}

// routed is the record that a route may lead to, that of the one probe behind a
// table entry or of a chain.
func (k *Kprobes) routed(entry *Kprobe, by hitBy) (x86.Addr, bool) {
	if entry.OnFtrace() && entry.hasPost() {
		return 0, false
	}
	members := k.members(entry)
	for _, p := range members {
		if !k.routable(p, by) {
			return 0, false
		}
	}
	switch len(members) {
	case 0:
		return 0, false
	case 1:
		return members[0].Record, true
	}
	return k.chain(entry, members, by)
}

// routable: guest code can do all of what a hit does for this probe.
func (k *Kprobes) routable(p *Kprobe, by hitBy) bool {
	switch {
	case p.Disabled() || p.Record == 0 || p.jprobe != nil:
		return false
	case p.kret != nil:
		return p.kret.pool != nil && p.kret.pool.record == p.Record && (!by.nmi || !k.c.Kret.MissedInNMI)
	}
	return p.PreCode != 0
}

// chain makes a record for the members of an aggregate; it lasts until the
// routes are forgotten.
func (k *Kprobes) chain(entry *Kprobe, members []*Kprobe, by hitBy) (x86.Addr, bool) {
	code := k.guest.routes.chain
	if by.ignores {
		code = k.guest.routes.chainAll
	}
	rec, ok := k.chainRecord(chainKey{entry, by}, recSize+8*(len(members)+1))
	if !ok {
		return 0, false
	}
	k.setGuestWord(rec+recCode, uint64(code))
	k.setGuestWord(rec+recAddr, uint64(entry.Addr))
	at := rec + recSize
	for _, p := range members {
		k.setGuestWord(at, uint64(p.Record))
		at += 8
	}
	k.setGuestWord(at, 0)
	return rec, true
}

// chainRecord is room for a chain: the last one's where it is made again, as
// after a caller has put memory back that the chain was written in.
func (k *Kprobes) chainRecord(key chainKey, size int) (x86.Addr, bool) {
	r := &k.guest.routes
	if rec := r.chains[key]; rec != 0 {
		return rec, true
	}
	if r.used+size > chainRoom {
		return 0, false
	}
	rec := r.room + x86.Addr(r.used)
	r.used += size
	r.chains[key] = rec
	k.guest.records[rec] = key.entry
	return rec, true
}

// learnDetour routes the hits of a detour buffer.
func (k *Kprobes) learnDetour(entry *Kprobe, handle uint64) {
	if !k.mayLearn() {
		return
	}
	if rec, ok := k.routed(entry, hitBy{ignores: true}); ok {
		k.learn(k.guest.routes.detours+x86.Addr(handle<<4&tableMask), handle, rec)
	}
}

// learnSite routes the hits of a fentry site; behind is the address behind it.
func (k *Kprobes) learnSite(entry *Kprobe, behind uint64) {
	if len(k.ftrace.functions.nops) > 0 || !k.mayLearn() {
		return
	}
	if rec, ok := k.routed(entry, hitBy{}); ok {
		k.learn(k.guest.routes.sites+x86.Addr(behind&tableMask), behind, rec)
	}
}

func (k *Kprobes) learn(pair x86.Addr, key uint64, rec x86.Addr) {
	k.setGuestWord(pair+8, uint64(rec))
	k.setGuestWord(pair, key)
	k.guest.routes.learned[pair] = true
}

// forgetRoutes is called before a probe is registered or changed.
func (k *Kprobes) forgetRoutes() {
	r := &k.guest.routes
	for pair := range r.learned {
		k.setGuestWord(pair, 0)
	}
	for _, rec := range r.chains {
		delete(k.guest.records, rec)
	}
	clear(r.learned)
	clear(r.chains)
	if !k.chainRuns() {
		r.used = 0
	}
	for at := range k.guest.gates.learned {
		k.guest.gates.m.UngateInt3(at)
	}
	clear(k.guest.gates.learned)
}

// chainRuns: guest code is in a chain, whose room stays taken for now.
func (k *Kprobes) chainRuns() bool {
	r := &k.guest.routes
	for n := range k.cpus {
		if l := k.cpus[n].local; l != nil && x86.Addr(l[wordRunning]).In(r.room, r.room+chainRoom) {
			return true
		}
	}
	return false
}

// placeRoutes puts the functions into guest memory, once there is a probe to
// route to. Detour buffers from then on, and the tracer's trampolines, call
// them; a buffer that stands already goes on calling Go.
func (k *Kprobes) placeRoutes() error {
	if k.c.Step.HandlerResets || !k.reachable() {
		return nil
	}
	if err := k.placeChains(); err != nil {
		return fmt.Errorf("aggr_pre_handler in guest code: %w", err)
	}
	if err := k.placeDetourRoute(); err != nil {
		return fmt.Errorf("optimized_callback in guest code: %w", err)
	}
	if err := k.placeSiteRoute(); err != nil {
		return fmt.Errorf("kprobe_ftrace_handler in guest code: %w", err)
	}
	return nil
}

func (k *Kprobes) placeChains() (err error) {
	r := &k.guest.routes
	if r.room != 0 {
		return nil
	}
	if r.chain, err = k.placeGuest("aggr_pre_handler", chainFor(true), nil); err != nil {
		return err
	}
	if r.chainAll, err = k.placeGuest("opt_pre_handler", chainFor(false), nil); err != nil {
		return err
	}
	r.chains, r.learned = map[chainKey]x86.Addr{}, map[x86.Addr]bool{}
	r.room, err = k.guest.m.Alloc(chainRoom)
	return err
}

func (k *Kprobes) placeDetourRoute() (err error) {
	r := &k.guest.routes
	if r.callback != 0 || k.opt.patcher == nil || k.c.Optimize.IRQsOff {
		return nil
	}
	if r.detours, err = k.guest.m.Alloc(tableSize); err != nil {
		return err
	}
	at, err := k.placeGuest("optimized_callback.guest", detourFor(k.c.Optimize.SSWord), k.fills(r.detours, k.opt.callback))
	if err != nil {
		return err
	}
	r.callback, k.opt.callback = at, at
	return nil
}

func (k *Kprobes) placeSiteRoute() (err error) {
	r := &k.guest.routes
	if r.sites != 0 || k.c.Step.FtraceIRQsOff {
		return nil
	}
	if k.ftrace.handler == 0 {
		if k.ftrace.handler, err = k.m.Callout("kprobe_ftrace_handler", k.ftraceHandler); err != nil {
			return err
		}
	}
	table, err := k.guest.m.Alloc(tableSize)
	if err != nil {
		return err
	}
	at, err := k.placeGuest("kprobe_ftrace_handler.guest", siteCode, k.fills(table, k.ftrace.handler))
	if err != nil {
		return err
	}
	r.sites, k.ftrace.handler = table, at
	for _, ops := range []*ftraceOps{&k.ftrace.plain, &k.ftrace.ipmodify} {
		if ops.trampoline == 0 {
			continue
		}
		if err := k.m.PokeText(ops.trampoline, assemble(ftraceParts, ops.trampoline, at)); err != nil {
			return err
		}
	}
	return nil
}

// fills are what every function is told; goes is where it goes for Go.
func (k *Kprobes) fills(table, goes x86.Addr) fills {
	local := k.guest.m.LocalOffset()
	return fills{
		fillRunning: local + 8*wordRunning, fillTask: local + 8*wordTask,
		fillTable: table, fillGo: goes, fillTramp: k.kret.trampoline,
	}
}

// placeGuest puts a function into guest memory.
func (k *Kprobes) placeGuest(name string, parts []gpart, f fills) (x86.Addr, error) {
	at, err := k.m.AllocExec(len(place(parts, 0, f)), name)
	if err != nil {
		return 0, err
	}
	return at, k.m.PokeText(at, place(parts, at, f))
}
