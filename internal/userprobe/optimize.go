package userprobe

import (
	"encoding/binary"
	"slices"

	"kprobelab/errno"
	"kprobelab/internal/process"
	"kprobelab/x86"
)

// A nop that is long enough becomes a call of a trampoline at its first hit, so that later hits
// take no trap. The trampoline makes the system call uprobe, which calls the handlers.
//
//	from 6.18 to 7.1        from 7.2
//	call trampoline         lea -0x80(%rsp),%rsp    ; past the red zone
//	                        call trampoline
const (
	callUprobe = 336
	callSize   = 5
	redZone    = 0x80
)

// optimized describes a kernel's way to optimize a uprobe.
type optimized struct {
	lead  []byte // before the call
	below uint64 // how far lead moves the stack
	code  []byte // the trampoline's
	// elsewhere is the errno of the system call outside a trampoline.
	elsewhere errno.Errno
	// alone: a process that fork makes inherits the call, but not the trampoline.
	alone bool
}

// trampoline is push %rcx; push %r11; push %rax; mov $336,%rax; syscall; pop %rax; pop %r11; pop %rcx; the return
// follows.
var trampoline = []byte{0x51, 0x41, 0x53, 0x50, 0x48, 0xc7, 0xc0, 0x50, 1, 0, 0, 0x0f, 0x05, 0x58, 0x41, 0x5b, 0x59}

var (
	nop5  = &optimized{code: slices.Concat(trampoline, []byte{0xc3, int3}), elsewhere: errno.ENXIO, alone: true}
	nop10 = &optimized{
		lead: []byte{0x48, 0x8d, 0x64, 0x24, 0x80}, below: redZone, code: slices.Concat(trampoline, []byte{0xc2, redZone, 0, int3}),
		elsewhere: errno.EPROTO,
	}
)

// optimization returns the kernel's way to optimize, nil if it has none.
func (k *Probes) optimization() *optimized {
	switch {
	case k.c.Uprobes.OptimizesNop10:
		return nop10
	case k.c.Uprobes.OptimizesNop5:
		return nop5
	}
	return nil
}

// optimize makes a call of the nop at a place that has its int3 (arch_uprobe_optimize). Where no
// trampoline can be near enough, it is not tried again.
func (k *Probes) optimize(u *uprobe, at x86.Addr, regs *x86.PtRegs) {
	how, own := k.optimization(), k.of(k.p.Space)
	if how == nil || !u.analysis.Optimizable || u.stays || !own.at[u][at] {
		return
	}
	end := at + x86.Addr(len(how.lead)+callSize)
	to, ok := k.trampolineNear(end, how)
	if !ok {
		u.stays = true
		return
	}
	code := append(slices.Clone(how.lead), 0xe8)
	code = binary.LittleEndian.AppendUint32(code, uint32(to.Sub(end)))
	if k.p.Poke(at, code) != nil {
		u.stays = true
		return
	}
	own.calls[at] = true
	k.Stats.Optimized++
	k.tell(EventOptimized, u, at, regs)
}

// near reports whether a call that ends at an address reaches another one.
func near(end, to x86.Addr) bool { return to.Sub(end) == int64(int32(to.Sub(end))) }

// trampolineNear returns a trampoline within a call's reach; it maps one if there is none yet.
func (k *Probes) trampolineNear(end x86.Addr, how *optimized) (x86.Addr, bool) {
	own := k.of(k.p.Space)
	for _, at := range own.trampolines {
		if near(end, at) {
			return at, true
		}
	}
	v := process.Mapping{Prot: process.ProtRead | process.ProtExec, Name: "[uprobes-trampoline]", Alone: how.alone}
	for _, at := range k.p.FreeAround(end) {
		v.Range = x86.Range{Start: at, End: at + process.PageSize}
		if !near(end, at) {
			continue
		}
		if _, err := k.p.Map(v); err != nil {
			continue
		}
		if k.p.Poke(at, how.code) != nil {
			return 0, false
		}
		own.trampolines = append(own.trampolines, at)
		return at, true
	}
	return 0, false
}

// called is the system call uprobe: the trampoline's stack has the registers that it uses, and
// where the call returns to.
func (k *Probes) called(how *optimized, regs *x86.PtRegs) {
	next := regs.IP + 2
	page := x86.Addr(regs.IP) &^ (process.PageSize - 1)
	if !slices.Contains(k.of(k.p.Space).trampolines, page) {
		regs.AX = uint64(-int64(how.elsewhere))
		regs.IP, regs.CX, regs.R11 = next, next, regs.Flags
		return
	}
	var b [32]byte
	if k.p.Read(x86.Addr(regs.SP), b[:]) != nil {
		k.p.Force(process.SIGILL)
		return
	}
	word := func(n int) uint64 { return binary.LittleEndian.Uint64(b[8*n:]) }
	moved := uint64(len(b)) + how.below
	regs.AX, regs.R11, regs.CX = word(0), word(1), word(2)
	regs.SP += moved
	regs.IP = word(3) - callSize - uint64(len(how.lead))
	u, at := k.find(x86.Addr(regs.IP)), x86.Addr(regs.IP)
	if u != nil {
		k.Stats.Calls++
		k.tell(EventCall, u, at, regs)
		k.handlers(u, regs)
	}
	regs.SP -= moved
	for i, v := range []uint64{regs.AX, regs.R11, regs.CX} {
		binary.LittleEndian.PutUint64(b[8*i:], v)
	}
	if k.p.Write(x86.Addr(regs.SP), b[:24]) != nil {
		k.p.Force(process.SIGILL)
		return
	}
	regs.IP, regs.CX, regs.R11 = next, next, regs.Flags
	if u != nil {
		k.tell(EventCallEnd, u, at, regs)
	}
}
