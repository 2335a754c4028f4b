package guestfast

import (
	"encoding/binary"
	"fmt"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// The words of a record beside those that kprobes documents (fastpath.S).
const (
	recCode   = 0
	recFree   = 16
	recReturn = 24
	recEntry  = 32
	recPost   = 40
	recSize   = 64
)

// A table of routes has 16,384 pairs of key and record; tableMask are the bits
// of a key, times 16, that pick a pair.
const (
	tableSize = 1 << 18
	tableMask = tableSize - 16
)

type routes struct {
	// detours and sites are the tables, 0 where there are no such routes.
	detours, sites x86.Addr
	// learned are the pairs in use.
	learned map[x86.Addr]bool
	// entry and post are the entries of the gates, gates the addresses of those
	// that are made.
	entry, post x86.Addr
	gates       map[x86.Addr]bool
	// chain and chainAll are aggr_pre_handler and opt_pre_handler, chains the
	// records for them, and room where these are.
	chain, chainAll x86.Addr
	chains          map[chainKey]x86.Addr
	room            x86.Addr
	used            int
}

// hitBy is what matters of the way that a hit comes.
type hitBy struct {
	// ignores: what the handlers return is ignored, as after a jump.
	ignores bool
	// nmi: the hit counts as an NMI, as an int3 may.
	nmi bool
	// noStep: nothing runs post handlers later.
	noStep bool
}

type chainKey struct {
	entry *kprobes.Kprobe
	by    hitBy
}

// chainRoom is the room for chains in bytes. It is allocated once, because
// chains are made during runs, and a caller may put the memory of a run back.
const chainRoom = 1 << 16

// route has the hits of a key go to guest code. Where another key has the pair,
// they go on coming to Go.
func (p *path) route(table x86.Addr, entry *kprobes.Kprobe, key, bits uint64, by hitBy) {
	if table == 0 {
		return
	}
	pair := table + x86.Addr(bits&tableMask)
	if old := p.get(pair); old != 0 && old != key {
		return
	}
	if rec, ok := p.record(entry, by); ok {
		p.set(pair+8, uint64(rec))
		p.set(pair, key)
		p.routes.learned[pair] = true
	}
}

// gate has the int3 of an entry go to guest code.
func (p *path) gate(entry *kprobes.Kprobe) {
	c := p.in.Config()
	if c.Step.TrapFlag && !p.in.Boosts(entry) {
		return
	}
	if rec, ok := p.record(entry, hitBy{nmi: c.Step.Int3IsNMI}); ok && p.m.GateInt3(entry.Addr, p.routes.entry, rec) {
		p.routes.gates[entry.Addr] = true
	}
}

// gatePost has the int3 that follows a copy go to guest code, where a post
// handler in guest code is the only one.
func (p *path) gatePost(entry *kprobes.Kprobe, at x86.Addr) {
	members := p.in.Members(entry)
	if len(members) != 1 || members[0].PostCode == 0 || members[0].Disabled() {
		return
	}
	rec := members[0].Record
	p.probes[rec] = members[0]
	p.set(rec+recPost, uint64(members[0].PostCode))
	if p.m.GateInt3(at, p.routes.post, rec) {
		p.routes.gates[at] = true
	}
}

// record is what a route leads to: the record of the only probe, or a chain.
func (p *path) record(entry *kprobes.Kprobe, by hitBy) (x86.Addr, bool) {
	members := p.in.Members(entry)
	for _, m := range members {
		if !p.routable(m, by) {
			return 0, false
		}
	}
	for _, m := range members {
		p.fill(m)
	}
	switch len(members) {
	case 0:
		return 0, false
	case 1:
		return members[0].Record, true
	}
	return p.chain(entry, members, by)
}

// routable reports whether guest code can do all that a hit does for a probe.
func (p *path) routable(m *kprobes.Kprobe, by hitBy) bool {
	if m.Disabled() || m.Record == 0 || m.FaultHandler != nil || by.noStep && m.PostHandler != nil {
		return false
	}
	if rp := p.in.Kretprobe(m); rp != nil {
		return p.callable(rp) && (!by.nmi || !p.in.Config().Kret.MissedInNMI)
	}
	return m.PreCode != 0
}

// fill makes a probe's record say what guest code is to call.
func (p *path) fill(m *kprobes.Kprobe) {
	p.probes[m.Record] = m
	if rp := p.in.Kretprobe(m); rp != nil {
		p.lend(rp)
		return
	}
	p.set(m.Record+recCode, uint64(m.PreCode))
}

// chain makes a record for the members of an aggregate. It lasts until the
// routes are forgotten.
func (p *path) chain(entry *kprobes.Kprobe, members []*kprobes.Kprobe, by hitBy) (x86.Addr, bool) {
	r, key := &p.routes, chainKey{entry, by}
	rec, ok := r.chains[key]
	if size := recSize + 8*(len(members)+1); !ok {
		if r.used+size > chainRoom {
			return 0, false
		}
		rec = r.room + x86.Addr(r.used)
		r.used += size
		r.chains[key], p.probes[rec] = rec, entry
	}
	code := r.chain
	if by.ignores {
		code = r.chainAll
	}
	p.set(rec+recCode, uint64(code))
	p.set(rec+kprobes.RecordAddr, uint64(entry.Addr))
	at := rec + recSize
	for _, m := range members {
		p.set(at, uint64(m.Record))
		at += 8
	}
	p.set(at, 0)
	return rec, true
}

// forgetRoutes has every hit come to Go. Records and chains whose handlers guest
// code runs stay.
func (p *path) forgetRoutes() {
	r := &p.routes
	for pair := range r.learned {
		p.set(pair, 0)
	}
	for at := range r.gates {
		p.m.UngateInt3(at)
	}
	clear(r.learned)
	clear(r.gates)
	clear(r.chains)
	if !p.runs(0) {
		clear(p.probes)
		r.used = 0
	}
}

// wipe removes all routes of a table, learned or not.
func (p *path) wipe(table x86.Addr) {
	if table == 0 {
		return
	}
	b := make([]byte, tableSize)
	if err := p.m.ReadMem(table, b); err != nil {
		p.in.Fail(err)
	}
	for at := 0; at < tableSize; at += 16 {
		if binary.LittleEndian.Uint64(b[at:]) != 0 {
			p.set(table+x86.Addr(at), 0)
		}
	}
}

// int3Out goes on after the pre handler of a gate, as Go does after its own.
func (p *path) int3Out(_ x86.Addr, regs *x86.PtRegs) {
	w := p.local[p.m.CPU()]
	probe, ret := p.probes[x86.Addr(w[wordRunning])], int32(w[wordArg])
	w[wordRunning] = busy
	if probe != nil {
		probe = p.in.Entry(probe)
	}
	if probe != nil {
		p.in.Resume(probe, ret, regs)
	} else {
		regs.IP-- // it was unregistered meanwhile: hit again
	}
	w[wordRunning] = 0
}

// stepOut ends the step before the post handler of a gate runs.
func (p *path) stepOut(_ x86.Addr, regs *x86.PtRegs) {
	if !p.in.EndStep(regs) {
		p.in.Fail(fmt.Errorf("int3 at %s: nobody steps there", x86.Addr(regs.IP-1)))
	}
}
