package kprobes

import (
	"kprobelab/kimage"
	"kprobelab/kprobes/slot"
	"kprobelab/kprobes/textpoke"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Kprobes is the subsystem of one machine.
type Kprobes struct {
	// What every hit reads comes first and close together: fetching cache lines
	// is a good part of the time of a hit.

	// where points to the numbers of the current CPU and task, if the machine
	// gives such pointers (Pointers); otherwise to nothing.
	where   struct{ cpu, task *int }
	cpus    []cpuState
	c       *profile.Config
	observe func(Event)
	misuse  func(*Misuse)
	kret    kretState
	// pools are nil without FollowPools.
	pools *pools
	// handles maps a detour buffer's handle to the buffer's aggregator.
	handles []*optimized
	// answerer and stepper are the machine, if it has these methods; otherwise nil.
	answerer Answerer
	stepper  Stepper
	// swapper is the machine, or it swaps words by the machine's reads and writes.
	swapper Swapper
	// m is the machine, and mem the same for emulated instructions, which read
	// and write through it.
	m     Machine
	mem   slot.Memory
	guest guestState
	// ftrace is the state of the registrations with the function tracer.
	ftrace ftraceState
	table  table

	view  *liveView
	slots slotCache
	mods  modules
	// nmiCount is preempt_count in an NMI: the kernel handles an int3 as one.
	nmiCount uint32
	// disarmed is kprobes_all_disarmed.
	disarmed bool
	// warned remembers the one-time warning about a second registration.
	warned bool

	jp  jprobeState
	opt optState

	log        func(string)
	onRegister func(*Kprobe)
	onTaken    func(*Kprobe, *TakenError)
	// shared is not nil where the guest changes text, too.
	shared SharedText
	// beside are the places that the guest has, too.
	beside map[x86.Addr]bool
	// late are calls of shared functions whose return address waits for the guest's own tracing.
	late []lateReturn
	// held are the probes that cannot be jumps because the guest has changed bytes under the jump.
	held []*Kprobe
	err  error
}

// New makes the subsystem and installs it as the receiver of m's traps. v is
// the code under test, c the kernel to behave like. Neither may be changed
// afterwards.
func New(m Machine, v kimage.View, c *profile.Config) *Kprobes {
	k := &Kprobes{m: m, mem: m, c: c, cpus: make([]cpuState, m.NumCPU()), mods: modulesOf(v)}
	k.answerer, _ = m.(Answerer)
	if k.swapper, _ = m.(Swapper); k.swapper == nil {
		k.swapper = &readAndWrite{m: m}
	}
	k.stepper, _ = m.(Stepper)
	if t, ok := m.(textpoke.Text); ok {
		k.opt.text = textpoke.New(t)
	}
	if k.stepper != nil {
		k.opt.text.Before = func(_ textpoke.Step, at x86.Addr) {
			k.stepper.Point(Point{Kind: PointAnnounce, Addr: at})
		}
	}
	if p, ok := m.(Pointers); ok {
		k.where.cpu, k.where.task = p.Where()
	}
	k.view = k.newView(v)
	count, _ := kimage.PreemptCount(v.Lookup)
	k.nmiCount = count.NMI()
	k.table.mult = c.HashMultiplier
	k.slots = slotCache{m: m, size: slotSize, name: "kprobe_insn_page", quiet: k.quiet}
	m.SetTraps(k.Traps())
	k.share()
	return k
}

// View is the code under test as it is in memory now, with the original bytes
// in place of this subsystem's int3s (docs/spec 1.5.1).
func (k *Kprobes) View() kimage.View { return k.view }

// Config is the kernel that is modelled; it must not be changed.
func (k *Kprobes) Config() *profile.Config { return k.c }

// OnLog sets a receiver for the lines that the subsystem would write to the
// kernel log, without a newline; nil discards them.
func (k *Kprobes) OnLog(fn func(line string)) { k.log = fn }

func (k *Kprobes) printk(line string) {
	if k.log != nil {
		k.log(line)
	}
}

// Find is get_kprobe: the table entry of an address. With several probes there
// it is the aggregator, which is none of the caller's objects.
func (k *Kprobes) Find(addr x86.Addr) *Kprobe { return k.table.lookup(addr) }

// Members are the probes at an address, newest first.
func (k *Kprobes) Members(addr x86.Addr) []*Kprobe {
	if entry := k.table.lookup(addr); entry != nil {
		return k.members(entry)
	}
	return nil
}

// Armed counts the addresses whose text is changed.
func (k *Kprobes) Armed() int {
	n := 0
	k.table.each(func(p *Kprobe) {
		if k.armed(p) || p.opt() != nil && p.opt().patched {
			n++
		}
	})
	return n
}

// Registered counts the probes that are registered, members of aggregates and
// return probes included.
func (k *Kprobes) Registered() int {
	n := 0
	k.table.each(func(p *Kprobe) { n += len(k.members(p)) })
	return n
}

// Probes are the registered probes, in the order of List.
func (k *Kprobes) Probes() (list []*Kprobe) {
	k.table.each(func(p *Kprobe) { list = append(list, k.members(p)...) })
	return list
}

// armed reports whether the table entry's int3, or its jump, is wanted in the
// text.
func (k *Kprobes) armed(p *Kprobe) bool { return !k.disarmed && !p.Disabled() }

// quiet reports that no CPU handles a probe: none is in a slot whose end returns to kprobes.
func (k *Kprobes) quiet() bool {
	if k.stepper != nil {
		return true // the caller has waited for it
	}
	for i := range k.cpus {
		if k.settle(i).current != nil {
			return false
		}
	}
	return true
}

// name names a probe in errors.
func (k *Kprobes) name(p *Kprobe) string { return k.symbolic(p.Addr) }

func (k *Kprobes) symbolic(at x86.Addr) string {
	if s, ok := k.view.SymbolAt(at); ok {
		return symbolic(s.Name, uint64(at.Sub(s.Addr)))
	}
	return at.String()
}
