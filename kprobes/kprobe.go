package kprobes

import (
	"kprobelab/kprobes/slot"
	"kprobelab/x86"
)

// Flags are a probe's KPROBE_FLAG_ bits, with the kernel's values.
type Flags uint32

// The flags.
const (
	// FlagGone: the probed code has gone with its module.
	FlagGone Flags = 1 << iota
	// FlagDisabled: the probe is temporarily disabled. It is the only flag
	// that registration takes from the caller.
	FlagDisabled
	// FlagOptimized: the probe is, or is about to be, a jump. The kernel keeps the flag in a
	// separate object that stands for all probes at the address, never in a registered probe: use
	// Kprobe.Optimized.
	FlagOptimized
	// FlagFtrace: the probe is on a function's fentry site.
	FlagFtrace
	// FlagOnFuncEntry: the probe is at a function's entry (5.18 and later).
	FlagOnFuncEntry
)

// PreHandler runs before the probed instruction, with regs.IP one past the
// probed address. It returns 0 to have the instruction executed. With any other
// value the CPU goes on at regs as the handler left them, IP included: the
// instruction and the post handler do not run.
//
// That is so after an int3. Once the probe is a jump (Kprobe.Optimized), the handler's return value
// is ignored, and so are its changes of IP, SP, CS and SS. To change the path of execution, give
// the probe a post handler, which prevents optimization. At a function's fentry site IP counts, but
// SP, SS and CS are lost. Kprobes.OnMisuse reports changes without effect.
type PreHandler func(p *Kprobe, regs *x86.PtRegs) int

// PostHandler runs after the probed instruction, with regs.IP at the next one
// to execute. flags is always 0.
type PostHandler func(p *Kprobe, regs *x86.PtRegs, flags uint64)

// FaultHandler runs when a handler of the probe faults, in releases with fault handlers (to 5.13).
// It returns non-zero if it has resolved the fault.
type FaultHandler func(p *Kprobe, regs *x86.PtRegs, trap int) int

// Kprobe is struct kprobe: a place and its handlers. Either SymbolName or Addr names the place.
// Registration by name sets Addr too, so clear Addr before you register the same object again.
//
// A handler may call guest code, and may register and unregister probes. A handler that panics
// counts as having returned 0, and Kprobes.Err reports it. A handler that ends its goroutine (as
// t.FailNow does) ends the run, and the machine with it.
type Kprobe struct {
	// SymbolName is a kallsyms name or "module:name"; empty for none.
	SymbolName string
	// Offset in bytes from the symbol or the address.
	Offset uint32
	// Addr is the probed address; registration sets it.
	Addr x86.Addr

	PreHandler   PreHandler
	PostHandler  PostHandler
	FaultHandler FaultHandler

	// PreCode and PostCode are the addresses of handlers in guest code, 0 for
	// none: int pre_handler(struct kprobe *p, struct pt_regs *regs), void
	// post_handler(p, regs). Registration sets PreHandler and PostHandler to
	// functions that call them.
	PreCode, PostCode x86.Addr
	// Record is the guest address that they get as p, set by registration. The
	// two words RecordOwn bytes after it are the handlers' own.
	Record x86.Addr

	// Flags is FlagDisabled or 0 before registration, the state after.
	// Unregistering leaves FlagDisabled set, as in the kernel: clear it before
	// the same object is registered again.
	Flags Flags
	// Nmissed counts hits that ran no handler because another probe was
	// being handled on that CPU.
	Nmissed uint64

	// kret is the return probe that this probe serves as entry of.
	kret *Kretprobe
	// jprobe is the jprobe that this probe calls the handler of.
	jprobe *Jprobe
	// ool is the instruction out of line, shared by the members of an
	// aggregate; nil where the probe is on an ftrace site.
	ool *outOfLine
	// ft is the fentry site of the probe, nil if it is on none. An aggregate's site is in the
	// aggregator.
	ft *ftraceSite
	// opcode is the byte that stood under the int3; 0 on a fentry site.
	opcode byte

	// aggregate is set on an aggregator: an object of this package that
	// stands for several probes at one address.
	aggregate *aggregate
	// entry is the aggregator of a member.
	entry *Kprobe
	// internal marks the subsystem's own probe (2.6.18's trampoline), which is
	// neither listed nor disarmed.
	internal bool
	// taken marks an entry whose place the guest has taken: the int3 there is not this
	// subsystem's.
	taken bool
	// next and prev link the hash bucket's chain.
	next, prev *Kprobe
}

// Disabled reports whether the probe runs no handlers: disabled or gone.
func (p *Kprobe) Disabled() bool { return p.Flags&(FlagDisabled|FlagGone) != 0 }

// Gone reports whether the probed code has gone.
func (p *Kprobe) Gone() bool { return p.Flags&FlagGone != 0 }

// Optimized reports whether the probe is, or is about to be, a jump: the
// kernel's list has [OPTIMIZED] for it. A probe that is about to be one is still an int3;
// Kprobes.Queue tells them apart, and Kprobes.Settle makes the jumps.
func (p *Kprobe) Optimized() bool {
	return (p.Flags|p.entryFlags())&FlagOptimized != 0
}

// entryFlags returns the flags of the aggregator that a member belongs to; 0 without one.
func (p *Kprobe) entryFlags() Flags {
	if p.entry == nil {
		return 0
	}
	return p.entry.Flags
}

// OnFtrace reports whether the probe is on a function's fentry site.
func (p *Kprobe) OnFtrace() bool { return p.Flags&FlagFtrace != 0 }

// Opcode is the first byte of the probed instruction, which stands under the
// int3 while the probe is armed; 0 for a probe on an ftrace site. Like Slot it
// is valid once registered.
func (p *Kprobe) Opcode() byte { return p.opcode }

// Slot is the probed instruction out of line, and whether there is one: a
// probe on an ftrace site has none.
func (p *Kprobe) Slot() (slot.Slot, bool) {
	if p.ool == nil {
		return slot.Slot{}, false
	}
	return p.ool.Slot, true
}

// hasPost reports whether a post handler is to run: for an aggregator,
// whether its post walker is installed.
func (p *Kprobe) hasPost() bool {
	if p.aggregate != nil {
		return p.aggregate.post
	}
	return p.PostHandler != nil
}

// hasBreak reports whether the probe has a break_handler: whether it is a
// jprobe, or an aggregator with one.
func (p *Kprobe) hasBreak() bool {
	if p.aggregate != nil {
		return p.aggregate.brk
	}
	return p.jprobe != nil
}

// missed counts a hit that ran no handler, on every member of an aggregate
// (kprobes_inc_nmissed_count). Disabled members count too.
func (p *Kprobe) missed() {
	if p.aggregate == nil {
		p.Nmissed++
		return
	}
	for _, m := range p.aggregate.members {
		m.Nmissed++
	}
}
