package kprobes

import (
	"encoding/binary"
	"fmt"

	"kprobelab/errno"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

// Handlers in guest code, such as those of a kernel module. At a hit, Go makes a register frame for
// the handler and calls it in the guest, on the stack of the interrupted code.

// GuestRunner is the set of methods beyond Machine that handlers in guest code need.
type GuestRunner interface {
	// CallGuest calls guest code on the stack of the code that runs now, and returns its rax.
	CallGuest(fn x86.Addr, a, b uint64) (uint64, error)
	// Alloc takes n zeroed bytes of data memory, Free gives them back.
	Alloc(n int) (x86.Addr, error)
	Free(at x86.Addr)
	// Local is a CPU's own page of variables; LocalOffset is the page's distance from the CPU's GS
	// base. The page holds register frames for handlers.
	Local(cpu int) []uint64
	LocalOffset() x86.Addr
}

// A record is the guest's struct kprobe, the first argument of a pre or post
// handler; an instance of a return probe points to the probe's. The handlers own
// the last two words, which are zero when the probe is registered. To them the
// rest is read-only.
const (
	// RecordAddr is the offset in bytes of the probed address.
	RecordAddr = 8
	// RecordOwn is the offset in bytes of the handlers' own words.
	RecordOwn  = 48
	recordSize = 64
)

// An instance in guest memory is the first argument of a return probe's
// handlers. It begins with the return address.
const (
	// InstanceRecord is the offset in bytes of the return probe's record.
	InstanceRecord = 16
	// InstanceData is the offset in bytes of an instance's data.
	InstanceData = 32
)

type guestState struct {
	// m is nil until a probe has handlers in guest code.
	m    GuestRunner
	word [8]byte
}

// guestHandlers gives a probe with handlers in guest code its record, and the Go functions that
// call the handlers. The error is ENOSYS if the machine cannot, ENOMEM if it has no room.
func (k *Kprobes) guestHandlers(p *Kprobe) error {
	if p.kret == nil && p.PreCode == 0 && p.PostCode == 0 {
		return nil
	}
	if p.kret == nil {
		if err := k.makeRecord(p); err != nil {
			return err
		}
	}
	if p.Record != 0 {
		k.setGuestWord(p.Record+RecordAddr, uint64(p.Addr))
	}
	if p.PreCode != 0 {
		p.PreHandler = k.guestPre
	}
	if p.PostCode != 0 {
		p.PostHandler = k.guestPost
	}
	return nil
}

// makeRecord gives a probe a record of zeros.
func (k *Kprobes) makeRecord(p *Kprobe) error {
	if err := k.startGuest(); err != nil {
		return err
	}
	if p.Record != 0 {
		return k.m.WriteMem(p.Record, make([]byte, recordSize))
	}
	at, err := k.guest.m.Alloc(recordSize)
	if err != nil {
		return noGuest(p, err)
	}
	p.Record = at
	return nil
}

// startGuest finds out whether the machine can call guest code.
func (k *Kprobes) startGuest() error {
	if k.guest.m != nil {
		return nil
	}
	m, ok := k.m.(GuestRunner)
	if !ok {
		return fmt.Errorf("handlers in guest code: the machine cannot call them: %w", errno.ENOSYS)
	}
	k.guest.m = m
	for n := range k.cpus {
		k.cpus[n].local = m.Local(n)
	}
	return nil
}

// dropRecord frees the record of a probe that is unregistered. A return probe's
// goes with its pool.
func (k *Kprobes) dropRecord(p *Kprobe) {
	if p.Record != 0 && p.kret == nil {
		k.freeGuest(p.Record)
		p.Record = 0
	}
}

// freeGuest gives guest memory back.
func (k *Kprobes) freeGuest(list ...x86.Addr) {
	for _, at := range list {
		k.guest.m.Free(at)
	}
}

func noGuest(p *Kprobe, cause error) error {
	r := probepoint.Refuse(rule.NoMemory, p.Addr, p.SymbolName)
	r.Cause = cause
	return r
}

func (k *Kprobes) guestPre(p *Kprobe, regs *x86.PtRegs) int {
	return k.callGuest(p, "pre_handler", p.PreCode, p.Record, regs)
}

func (k *Kprobes) guestPost(p *Kprobe, regs *x86.PtRegs, _ uint64) {
	k.callGuest(p, "post_handler", p.PostCode, p.Record, regs)
}

// guestReturns gives a return probe with handlers in guest code a record, and
// the Go functions that call them.
func (k *Kprobes) guestReturns(rp *Kretprobe) error {
	rp.KP.Record = 0 // each pool has its own record
	if rp.HandlerCode == 0 && rp.EntryCode == 0 {
		return nil
	}
	if err := k.makeRecord(&rp.KP); err != nil {
		return err
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
	k.setGuestWord(i.node, uint64(i.RetAddr))
	return k.callGuest(&rp.KP, "handler", rp.HandlerCode, i.node, regs)
}

func (k *Kprobes) guestEntry(i *Instance, regs *x86.PtRegs) int {
	rp := i.pool.owner
	return k.callGuest(&rp.KP, "entry_handler", rp.EntryCode, i.node, regs)
}

// placeInstances gives a pool's instances their guest memory.
func (k *Kprobes) placeInstances(rp *Kretprobe) error {
	if rp.KP.Record == 0 {
		return nil
	}
	pool := rp.pool
	size := (InstanceData + rp.DataSize + 7) &^ 7
	at, err := k.guest.m.Alloc(size * rp.MaxActive)
	if err != nil {
		return noGuest(&rp.KP, err)
	}
	pool.record, pool.nodes = rp.KP.Record, at
	for n := range pool.all {
		pool.all[n].node = at + x86.Addr(n*size)
		k.setGuestWord(pool.all[n].node+InstanceRecord, uint64(pool.record))
	}
	return nil
}

// freeInstances gives back the guest memory of a pool none of whose instances
// is pending. What is pending needs it: then it goes with the machine.
func (k *Kprobes) freeInstances(p *instancePool) {
	if p.record == 0 {
		return
	}
	free := 0
	for i := p.free; i != nil; i = i.next {
		free++
	}
	if free == len(p.all) {
		k.freeGuest(p.nodes, p.record)
	}
	p.record = 0
}

// frameWords is a frame's room in the CPU's page.
const frameWords = x86.PtRegsSize / 8

// callGuest calls a handler in guest code from Go, with a frame in the CPU's
// page. A handler that fails ends the run, as an oops would.
func (k *Kprobes) callGuest(p *Kprobe, field string, code, arg x86.Addr, regs *x86.PtRegs) int {
	if code == 0 {
		return 0
	}
	n := k.cpuNumber()
	cpu := &k.cpus[n]
	first := cpu.frames * frameWords
	if first+frameWords > len(cpu.local) {
		k.fail(fmt.Errorf("%s of %s: nested too deeply: %w", field, k.name(p), errno.ENOMEM))
		return 0
	}
	words := cpu.local[first:]
	copy(words, regs.Words()[:])
	cpu.frames++
	at := k.m.GSBase(n) + k.guest.m.LocalOffset() + x86.Addr(8*first)
	ret, err := k.guest.m.CallGuest(code, uint64(arg), uint64(at))
	cpu.frames = first / frameWords
	if err != nil {
		k.fail(fmt.Errorf("%s of %s: %w", field, k.name(p), err))
		return 0
	}
	copy(regs.Words()[:], words)
	return int(int32(ret))
}

// setGuestWord writes a word of a record or an instance, which are memory of
// this subsystem: it cannot fail.
func (k *Kprobes) setGuestWord(at x86.Addr, v uint64) {
	b := k.guest.word[:]
	binary.LittleEndian.PutUint64(b, v)
	if err := k.m.WriteMem(at, b); err != nil {
		k.fail(err)
	}
}
