package kprobes

import (
	"encoding/binary"
	"fmt"

	"kprobelab/errno"
	"kprobelab/kprobes/probepoint"
	"kprobelab/x86"
)

// Handlers in guest code, as a kernel module's are. Every hit can call one
// through Go, which makes a frame for it and calls into the guest. Where a hit
// comes by a jump, by the function tracer or by the return trampoline, guest
// code of ours does what the kernel's does there (guestcode.go) and nothing
// crosses into Go at all: the routes, which are learned from hits and forgotten
// whenever a probe is registered or changed (guestroute.go).

// GuestRunner is what handlers in guest code need of a machine beside Machine.
type GuestRunner interface {
	// CallGuest calls guest code on top of what runs now, and returns its rax.
	CallGuest(fn x86.Addr, a, b uint64) (uint64, error)
	// Alloc takes n zeroed bytes of data memory, Free gives them back.
	Alloc(n int) (x86.Addr, error)
	Free(at x86.Addr)
	// Local is a CPU's own page of variables, LocalOffset where it is from the
	// CPU's GS base. While word 0 is above 1 the CPU's task is not preempted;
	// word 1 is the number of the task that runs.
	Local(cpu int) []uint64
	LocalOffset() x86.Addr
	// SteadyBlocks reports whether no other CPU runs in the middle of guest
	// code that does not branch.
	SteadyBlocks() bool
}

// The words of a CPU's page.
const (
	wordRunning = iota // the record whose handler guest code runs, guestBusy, or 0
	wordTask
	wordFrames = 8 // from here on, frames for handlers that Go calls
)

// guestBusy in the running word: handlers are Go's affair now.
const guestBusy = 1

// A record is what guest code knows of a probe: the first argument of a pre or
// post handler. To the handler it is read-only, but for its last two words,
// which are the handler's own and zero when the probe is registered.
const (
	recCode   = 0  // what a route calls
	recAddr   = 8  // the probed address
	recFree   = 16 // of a return probe: the first free instance
	recReturn = 24 // its handler
	recEntry  = 32 // its entry handler
	recSize   = 64
	// RecordOwn is the offset in bytes of the handler's own words.
	RecordOwn = 48
)

type guestState struct {
	// m is nil until a probe has handlers in guest code.
	m GuestRunner
	// records are the probes by their records.
	records map[x86.Addr]*Kprobe
	// idle is what the running word is while nothing runs: guestBusy while an
	// observer wants to see every step.
	idle   uint64
	routes guestRoutes
	pools  guestPools
	gates  guestGates
	word   [8]byte
}

// guestHandlers gives a probe with handlers in guest code its record, and the
// Go functions that call them. The error is ENOSYS where the machine cannot,
// ENOMEM where it has no room.
func (k *Kprobes) guestHandlers(p *Kprobe) error {
	if p.kret != nil && p.Record != 0 {
		k.setGuestWord(p.Record+recAddr, uint64(p.Addr))
	}
	if p.PreCode == 0 && p.PostCode == 0 {
		return nil
	}
	if err := k.makeRecord(p); err != nil {
		return err
	}
	k.setGuestWord(p.Record+recCode, uint64(p.PreCode))
	k.setGuestWord(p.Record+recAddr, uint64(p.Addr))
	k.setGuestWord(p.Record+recPost, uint64(p.PostCode))
	if p.PreCode != 0 {
		p.PreHandler = k.guestPre
	}
	if p.PostCode != 0 {
		p.PostHandler = k.guestPost
	}
	return nil
}

func (k *Kprobes) makeRecord(p *Kprobe) error {
	if err := k.startGuest(); err != nil {
		return err
	}
	if p.Record == 0 {
		at, err := k.guest.m.Alloc(recSize)
		if err != nil {
			return noGuest(p, err)
		}
		p.Record = at
	}
	k.guest.records[p.Record] = p
	if err := k.m.WriteMem(p.Record, make([]byte, recSize)); err != nil {
		return noGuest(p, err)
	}
	if err := k.placeRoutes(); err != nil {
		return err
	}
	return k.placeGates()
}

// startGuest finds out whether the machine can.
func (k *Kprobes) startGuest() error {
	if k.guest.m != nil {
		return nil
	}
	m, ok := k.m.(GuestRunner)
	if !ok {
		return fmt.Errorf("handlers in guest code: the machine cannot call them: %w", errno.ENOSYS)
	}
	k.guest.m, k.guest.records = m, map[x86.Addr]*Kprobe{}
	for n := range k.cpus {
		k.cpus[n].local = m.Local(n)
	}
	k.setIdle()
	return nil
}

// dropRecord frees a probe's record, unless guest code runs with it: then it
// is needed, and its memory goes with the machine.
func (k *Kprobes) dropRecord(p *Kprobe) {
	if p.Record != 0 && p.kret == nil {
		k.freeRecord(p.Record)
		p.Record = 0
	}
}

func (k *Kprobes) freeRecord(rec x86.Addr) {
	for n := range k.cpus {
		if k.cpus[n].local[wordRunning] == uint64(rec) {
			return
		}
	}
	delete(k.guest.records, rec)
	k.guest.m.Free(rec)
}

func noGuest(p *Kprobe, cause error) error {
	r := probepoint.Refuse(errno.ENOMEM, probepoint.RuleNoMemory, p.Addr, p.SymbolName)
	r.Cause = cause
	return r
}

// setIdle makes guest code leave every hit to Go while somebody observes.
func (k *Kprobes) setIdle() {
	k.guest.idle = 0
	if k.observe != nil {
		k.guest.idle = guestBusy
	}
	for n := range k.cpus {
		if l := k.cpus[n].local; l != nil && l[wordRunning] <= guestBusy {
			l[wordRunning] = k.guest.idle
		}
	}
}

// engage keeps guest code from running handlers while one of Go runs, and
// disengage ends that.
func (cpu *cpuState) engage() (before uint64) {
	if cpu.local != nil {
		before = cpu.local[wordRunning]
		cpu.local[wordRunning] = guestBusy
	}
	return before
}

func (cpu *cpuState) disengage(before uint64) {
	if cpu.local != nil {
		cpu.local[wordRunning] = before
	}
}

// adopt makes what guest code is running what the CPU is handling, so that a
// hit inside it is a nested one, and ends that when guest code has.
func (k *Kprobes) adopt(cpu *cpuState) {
	w := cpu.local[wordRunning]
	if cpu.adopted != 0 && w != cpu.adopted {
		if cpu.current == k.guest.records[x86.Addr(cpu.adopted)] {
			cpu.current = nil
		}
		cpu.adopted = 0
	}
	if w <= guestBusy || cpu.adopted != 0 || cpu.current != nil {
		return
	}
	p := k.guest.records[x86.Addr(w)]
	cpu.adopted, cpu.current, cpu.status, cpu.ool = w, p, HitActive, nil
	cpu.path, cpu.task = byJump, int(cpu.local[wordTask])
}

// abandon is the end of what guest code was running, with its task.
func (k *Kprobes) abandon(cpu *cpuState) {
	if cpu.local != nil {
		cpu.local[wordRunning], cpu.adopted, cpu.frames = k.guest.idle, 0, 0
	}
}

func (k *Kprobes) guestPre(p *Kprobe, regs *x86.PtRegs) int {
	return k.callGuest(p, "pre_handler", p.PreCode, p.Record, regs)
}

func (k *Kprobes) guestPost(p *Kprobe, regs *x86.PtRegs, _ uint64) {
	k.callGuest(p, "post_handler", p.PostCode, p.Record, regs)
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
	first := wordFrames + cpu.frames*frameWords
	if first+frameWords > len(cpu.local) {
		k.fail(fmt.Errorf("%s of %s: nested too deeply: %w", field, k.name(p), errno.ENOMEM))
		return 0
	}
	words := cpu.local[first:]
	putFrame(words, regs)
	cpu.frames++
	at := k.m.GSBase(n) + k.guest.m.LocalOffset() + x86.Addr(8*first)
	ret, err := k.guest.m.CallGuest(code, uint64(arg), uint64(at))
	cpu.frames = (first - wordFrames) / frameWords
	if err != nil {
		k.fail(fmt.Errorf("%s of %s: %w", field, k.name(p), err))
		return 0
	}
	getFrame(words, regs)
	return int(int32(ret))
}

func putFrame(w []uint64, r *x86.PtRegs) {
	*(*[frameWords]uint64)(w) = [frameWords]uint64{
		r.R15, r.R14, r.R13, r.R12, r.BP, r.BX, r.R11, r.R10, r.R9, r.R8,
		r.AX, r.CX, r.DX, r.SI, r.DI, r.OrigAX, r.IP, r.CS, r.Flags, r.SP, r.SS,
	}
}

func getFrame(w []uint64, r *x86.PtRegs) {
	*r = x86.PtRegs{
		R15: w[0], R14: w[1], R13: w[2], R12: w[3], BP: w[4], BX: w[5], R11: w[6], R10: w[7], R9: w[8], R8: w[9],
		AX: w[10], CX: w[11], DX: w[12], SI: w[13], DI: w[14], OrigAX: w[15], IP: w[16], CS: w[17], Flags: w[18], SP: w[19], SS: w[20],
	}
}

// guestWord and setGuestWord are for words of records and instances, which
// are memory of this subsystem: they cannot fail. One buffer serves, for one
// CPU runs at a time.
func (k *Kprobes) guestWord(at x86.Addr) uint64 {
	b := k.guest.word[:]
	if err := k.m.ReadMem(at, b); err != nil {
		k.fail(err)
	}
	return binary.LittleEndian.Uint64(b)
}

func (k *Kprobes) setGuestWord(at x86.Addr, v uint64) {
	b := k.guest.word[:]
	binary.LittleEndian.PutUint64(b, v)
	if err := k.m.WriteMem(at, b); err != nil {
		k.fail(err)
	}
}
