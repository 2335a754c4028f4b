package kprobes

import (
	"fmt"

	"kprobelab/x86"
)

// A breakpoint whose handler is guest code goes through a gate: the CPU enters
// guest code as it enters asm_exc_int3 through the interrupt descriptor table,
// with the frame on the interrupted stack, and that calls the handler. What
// comes then, a step out of line or an emulation, is Go's (gateDone): one call,
// as for a handler in Go, where a handler called from Go would be a run of the
// machine inside another. The int3 behind the copy has a gate of its own where
// a post handler waits for it.

// Gates is what a machine has for that, beside GuestRunner.
type Gates interface {
	// GateInt3 leads the int3 at an address to guest code, which finds
	// interrupts off and the hardware's part of a pt_regs on the stack, arg
	// below it, and above it 64 unused bytes. A gate is not taken while word 0
	// of the CPU's page is not 0, and another one may take its place.
	GateInt3(at, entry, arg x86.Addr)
	// UngateInt3 takes the gate at an address away.
	UngateInt3(at x86.Addr)
}

// More words of a CPU's page: what the step that is under way adds to ip and
// flags when it ends.
const (
	wordStepIP    = 2
	wordStepFlags = 3
)

// recPost is where a record has the post handler.
const recPost = 40

type guestGates struct {
	// m is nil where the machine or the profile has none.
	m Gates
	// entry and post are the entries of the two gates, 0 until placed.
	entry, post x86.Addr
	learned     map[x86.Addr]bool
}

const (
	fillStepIP field = iota + 200
	fillStepFlags
)

var gateEnter = []gpart{
	{code: pushRegs.code, text: pushRegs.text},
	{code: []byte{0x48, 0x89, 0xe6}, text: "mov %rsp,%rsi: regs"},
	{code: []byte{0x48, 0x8b, 0x7c, 0x24, 0x78}, text: "mov 0x78(%rsp),%rdi: rec, the gate's word"},
	{code: []byte{0x48, 0xc7, 0x44, 0x24, 0x78, 0xff, 0xff, 0xff, 0xff}, text: "movq $-1,0x78(%rsp): orig_ax"},
}

// gateCall runs the pre handler. Its result goes to Go in orig_ax.
var gateCall = []gpart{
	{code: []byte{0x65, 0x48, 0x89, 0x3c, 0x25, 0, 0, 0, 0}, text: "mov %rdi,%gs:running", fill: fillRunning},
	{code: []byte{0xff, 0x17}, text: "call *(%rdi): pre_handler(rec, regs)"},
	{code: []byte{0x89, 0xc0}, text: "mov %eax,%eax"},
	{code: []byte{0x48, 0x89, 0x44, 0x24, 0x78}, text: "mov %rax,0x78(%rsp)"},
}

// gateStepped ends the step and runs the post handler.
var gateStepped = []gpart{
	{code: []byte{0x65, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0}, text: "mov %gs:step_ip,%rax", fill: fillStepIP},
	{code: []byte{0x48, 0x01, 0x84, 0x24, 0x80, 0, 0, 0}, text: "add %rax,0x80(%rsp): ip, in the original code"},
	{code: []byte{0x65, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0}, text: "mov %gs:step_flags,%rax", fill: fillStepFlags},
	{code: []byte{0x48, 0x09, 0x84, 0x24, 0x90, 0, 0, 0}, text: "or %rax,0x90(%rsp): flags"},
	{code: []byte{0x65, 0x48, 0x89, 0x3c, 0x25, 0, 0, 0, 0}, text: "mov %rdi,%gs:running", fill: fillRunning},
	{code: []byte{0x31, 0xd2}, text: "xor %edx,%edx: flags are 0"},
	{code: []byte{0xff, 0x57, recPost}, text: "call *40(%rdi): post_handler(rec, regs, 0)"},
}

// gateLeave asks Go how to go on, and does: with the frame's registers, flags,
// sp and ip.
var gateLeave = []gpart{
	{code: []byte{0x48, 0x89, 0xe7}, text: "mov %rsp,%rdi"},
	{code: []byte{0xe8, 0, 0, 0, 0}, text: "call Go", fill: fillGo},
	{code: []byte{0x48, 0x8b, 0x84, 0x24, 0x98, 0, 0, 0}, text: "mov 0x98(%rsp),%rax: sp"},
	{code: []byte{0x48, 0x8b, 0x8c, 0x24, 0x80, 0, 0, 0}, text: "mov 0x80(%rsp),%rcx: ip"},
	{code: []byte{0x48, 0x89, 0x48, 0xf8}, text: "mov %rcx,-8(%rax)"},
	{code: []byte{0x48, 0x8b, 0x8c, 0x24, 0x90, 0, 0, 0}, text: "mov 0x90(%rsp),%rcx: flags"},
	{code: []byte{0x48, 0x89, 0x48, 0xf0}, text: "mov %rcx,-16(%rax)"},
	{code: []byte{0x48, 0x83, 0xe8, 0x10}, text: "sub $16,%rax"},
	{code: []byte{0x48, 0x89, 0x84, 0x24, 0x98, 0, 0, 0}, text: "mov %rax,0x98(%rsp)"},
	{code: popRegs.code, text: popRegs.text},
	{code: []byte{0x48, 0x8b, 0x64, 0x24, 0x20}, text: "mov 0x20(%rsp),%rsp"},
	{code: []byte{0x9d}, text: "popfq"},
	{code: []byte{0xc3}, text: "ret"},
}

// placeGates puts the entries into guest memory.
func (k *Kprobes) placeGates() error {
	g := &k.guest.gates
	m, ok := k.m.(Gates)
	if !ok || g.m != nil || k.c.Step.HandlerResets || !k.reachable() {
		return nil
	}
	var err error
	if g.entry, err = k.placeGate("asm_exc_int3", "kprobe_int3_handler.out", gateCall, k.gateDone); err != nil {
		return fmt.Errorf("the int3 entry in guest code: %w", err)
	}
	if g.post, err = k.placeGate("asm_exc_int3.post_handler", "kprobe_post_process.out", gateStepped, k.gatePosted); err != nil {
		return fmt.Errorf("the int3 entry in guest code: %w", err)
	}
	g.m, g.learned = m, map[x86.Addr]bool{}
	return nil
}

func (k *Kprobes) placeGate(name, out string, call []gpart, fn func(x86.Addr, *x86.PtRegs)) (x86.Addr, error) {
	stub, err := k.m.Callout(out, fn)
	if err != nil {
		return 0, err
	}
	f := k.fills(0, stub)
	f[fillStepIP], f[fillStepFlags] = k.guest.m.LocalOffset()+8*wordStepIP, k.guest.m.LocalOffset()+8*wordStepFlags
	var parts []gpart
	for _, list := range [][]gpart{gateEnter, call, gateLeave} {
		parts = append(parts, list...)
	}
	return k.placeGuest(name, parts, f)
}

// learnGate makes the gate of a probe that a hit has come to Go for.
func (k *Kprobes) learnGate(entry *Kprobe) {
	g := &k.guest.gates
	if !k.mayLearn() || k.c.Step.TrapFlag && !k.boosts(entry, entry.ool) {
		return
	}
	rec, ok := k.routed(entry, hitBy{nmi: k.c.Step.Int3IsNMI})
	if !ok {
		return
	}
	g.m.GateInt3(entry.Addr, g.entry, rec)
	g.learned[entry.Addr] = true
}

// learnPost makes the gate behind a copy whose post handler is guest code.
func (k *Kprobes) learnPost(entry *Kprobe, regs *x86.PtRegs) {
	g := &k.guest.gates
	if !k.mayLearn() || len(k.members(entry)) != 1 {
		return
	}
	if p := k.members(entry)[0]; p.PostCode != 0 && !p.Disabled() {
		at := x86.Addr(regs.IP - 1)
		g.m.GateInt3(at, g.post, p.Record)
		g.learned[at] = true
	}
}

// noteStep leaves the gate behind the copy what finishStep would know.
func (k *Kprobes) noteStep(cpu *cpuState) {
	if cpu.local != nil {
		cpu.local[wordStepIP] = uint64(cpu.ool.At.Sub(cpu.ool.Addr)) - 1
		cpu.local[wordStepFlags] = cpu.savedFlags
	}
}

// gateDone goes on behind the pre handler, as hit does.
func (k *Kprobes) gateDone(_ x86.Addr, regs *x86.PtRegs) {
	cpu, ret := k.cpu(), int32(regs.OrigAX)
	regs.OrigAX = ^uint64(0)
	p := k.guestDone(cpu)
	if p == nil {
		regs.IP-- // the guest has overwritten its own state: hit again, by way of Go
		return
	}
	k.begin(cpu, p, regs)
	cpu.status = HitActive
	cpu.come(byTrap, regs)
	cpu.task = k.task()
	if ret == 0 {
		k.setupStep(cpu, p, regs, false)
		return
	}
	cpu.current = nil
}

// gatePosted ends a hit behind its post handler.
func (k *Kprobes) gatePosted(_ x86.Addr, _ *x86.PtRegs) {
	cpu := k.cpu()
	k.guestDone(cpu)
	cpu.current = nil
}

// guestDone is the table entry of the probe whose handler guest code has run,
// nil where there is none.
func (k *Kprobes) guestDone(cpu *cpuState) *Kprobe {
	p := k.guest.records[x86.Addr(cpu.local[wordRunning])]
	cpu.local[wordRunning], cpu.adopted = k.guest.idle, 0
	if p == nil {
		return nil
	}
	return k.entryOf(p)
}
