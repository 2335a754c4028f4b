package kprobestest

import (
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"kprobelab"
	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/profile"
	"kprobelab/watch"
	"kprobelab/x86"
)

// Machine is a kernel that a test may probe. Its methods that cannot fail
// end the test where they do. It belongs to the test's goroutine.
type Machine struct {
	t   testing.TB
	lab *kprobelab.Lab
	// sites has the place of each registered probe, for the leak check.
	sites map[*kprobes.Kprobe]string
	// warned are the warnings that were printed; none is repeated.
	warned map[string]bool
	// pooled is the shared machine to which a booted kernel returns.
	pooled *pooled
	// ret is a return instruction of the machine's own, 0 until it is needed.
	ret x86.Addr
	// settles: calls wait for the optimizer first. new is true if probes were added since the last
	// wait; calls is the number of calls under way.
	settles, new bool
	calls        int
}

// Options select the kernel of a test, and how it runs; the zero value of each is its default.
type Options struct {
	// Image is the file of a kernel image, or of the memory dump of a booted kernel. Empty:
	// the guest kernel.
	Image string
	// NoOptimize keeps jump optimization off, as debug.kprobes-optimization=0 does: every probe
	// keeps its int3. Without it probes are optimized as on a kernel and by the command run.
	NoOptimize bool
	// NoSettle does not let the optimizer do all that waits for it before a call: probes wait in
	// its queue for Settle, and hit by their int3 meanwhile, as in a kernel just after they were registered.
	NoSettle bool

	// The rest is the Lab's.

	// Profile names the kernel whose rules hold ("6.1"; profile.All lists them). Empty: the profile
	// that the image's facts select.
	Profile string
	// Rules are a profile of the caller's own; with them, Profile is not used.
	Rules *profile.Config
	// Preemption, where set, decides whether the kernel has CONFIG_PREEMPTION, in place of the
	// profile: with it, no probe is boosted.
	Preemption *bool
	// Config names a kernel .config, plain or gzip, that decides what would
	// otherwise be inferred. Empty: the image's own, if it is embedded.
	Config string
	// LiveText names a file whose text is laid over the image's, Symbols a
	// System.map or a copy of /proc/kallsyms that replaces its symbols.
	LiveText, Symbols string
	// Modules are files to load into module space (.ko or .o), in order.
	Modules []string
	// CPU is the processor that the boot-time text is made for
	// (kimage.Options.CPU), qemu64 by default. The machine emulates the
	// nearest that it can.
	CPU string

	// Reader reads the instructions for the checks of a registration and of
	// jump optimization. The default is decoder.X86asm.
	Reader decoder.Reader

	// Engine is the engine that executes the guest's code: "unicorn" or "interp". Empty means
	// $KPROBELAB_ENGINE, or else unicorn if this build has it.
	Engine string
	// CPUs is the number of CPUs, 1 by default, at most 64.
	CPUs int
	// Seed decides every choice of the scheduler.
	Seed int64
	// Budget is the number of instructions that a call may execute, 100 million by default.
	Budget uint64
	// Timeout is the real time that a call may take, unlimited by default. Runs that it ends need
	// not repeat.
	Timeout time.Duration
	// Slice is the number of instructions after which the scheduler may switch to another task:
	// 1000 by default, counted by blocks, and 1 with EveryInstruction. The CPUs of a booted kernel
	// have slices of their own.
	Slice uint64
	// EveryInstruction lets the scheduler switch tasks after any instruction, or after Slice of
	// them, not after blocks only: so functions of a few instructions overlap on several CPUs. It
	// is several times slower.
	EveryInstruction bool
	// FreeHits lets no virtual time pass in a probe's own work, so that a probed run
	// of a booted kernel gets its timers' interrupts where the unprobed one does.
	FreeHits bool
	// TrapCost is the virtual time in nanoseconds that int3 and #DB take, 100 by default.
	TrapCost uint64
}

// lab are the options of the Lab.
func (o *Options) lab() *kprobelab.Options {
	return &kprobelab.Options{
		Profile: o.Profile, Rules: o.Rules, Preemption: o.Preemption, Config: o.Config, LiveText: o.LiveText, Symbols: o.Symbols, Modules: o.Modules, CPU: o.CPU, Reader: o.Reader, Engine: o.Engine, CPUs: o.CPUs, Seed: o.Seed, Budget: o.Budget, Timeout: o.Timeout, Slice: o.Slice, EveryInstruction: o.EveryInstruction, FreeHits: o.FreeHits, TrapCost: o.TrapCost, Optimize: !o.NoOptimize,
	}
}

// New makes a machine that runs the image. At the test's end the machine is checked and closed: see
// the package's doc for the checks. A nil o means the defaults. It ends the test if the image
// cannot be read. The memory dump of a booted kernel is opened once for the whole process: each
// test has a machine in the state of the dump, which shares unwritten pages with the others.
func New(t testing.TB, o *Options) *Machine {
	t.Helper()
	if o == nil {
		o = &Options{}
	}
	l, from, err := open(o.Image, o.lab())
	if err != nil {
		t.Fatalf("kprobestest: %v", err)
	}
	m := &Machine{t: t, lab: l, pooled: from, sites: map[*kprobes.Kprobe]string{}, warned: map[string]bool{}, settles: !o.NoOptimize && !o.NoSettle}
	l.Kprobes.OnRegister(func(p *kprobes.Kprobe) { m.sites[p], m.new = site(), true })
	l.Kprobes.OnMisuse(m.misused)
	t.Cleanup(func() {
		t.Helper()
		m.check()
		m.done()
	})
	return m
}

// Lab returns the Lab that the machine uses: image, machine and kprobes.
func (m *Machine) Lab() *kprobelab.Lab { return m.lab }

// Image is the code under test.
func (m *Machine) Image() *kimage.Image { return m.lab.Image }

// Emu is the machine itself: memory, tasks, the clock.
func (m *Machine) Emu() *machine.Machine { return m.lab.Machine }

// Kprobes is the subsystem. What is registered with it directly has to be
// unregistered before the test ends.
func (m *Machine) Kprobes() *kprobes.Kprobes { return m.lab.Kprobes }

// misused warns of a handler that does something without effect.
func (m *Machine) misused(u *kprobes.Misuse) {
	if text := u.String(); !m.warned[text] {
		m.warned[text] = true
		m.t.Logf("kprobestest: warning: %s", text)
	}
}

// Call calls a function and returns rax; the arguments are as for the machine's Call: integers,
// strings, []byte (copied in and back), *machine.Buf, x86.Addr. Their number has to match the
// function's prototype, if the image has it (BTF). A call that fails ends the test; use Try for
// calls that may fail.
func (m *Machine) Call(name string, args ...any) uint64 {
	m.t.Helper()
	v, err := m.Try(name, args...)
	if err != nil {
		m.t.Fatalf("call of %s: %s", name, strings.TrimPrefix(err.Error(), name+": "))
	}
	return v
}

// Try is Call with the error: an *machine.Fault, an *machine.BudgetError, the error of a hit, or a
// number of arguments that the function does not take.
func (m *Machine) Try(name string, args ...any) (uint64, error) {
	if proto, ok := m.lab.Image.Proto(name); ok {
		if err := proto.Takes(len(args)); err != nil {
			return 0, err
		}
	}
	defer m.calling()()
	return m.lab.Call(name, args...)
}

// calling lets the optimizer process its queues before a call, as a kernel's would have done long
// before, but not in a handler's call. The returned function is for the call's end.
func (m *Machine) calling() func() {
	m.t.Helper()
	if m.calls++; m.calls == 1 && m.settles && m.new {
		m.new = false
		m.Settle()
	}
	return func() { m.calls-- }
}

// Kprobe registers a probe at "SYM[+OFF]" or "0xADDR" and unregisters it at
// the test's end. Each handler may be nil. A refusal ends the test.
func (m *Machine) Kprobe(place string, pre kprobes.PreHandler, post kprobes.PostHandler) *kprobes.Kprobe {
	m.t.Helper()
	kp, err := m.lab.Kprobe(place, pre, post)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { m.lab.Kprobes.UnregisterKprobe(kp.Kprobe) })
	return kp.Kprobe
}

// Watch sets a watchpoint at "SYM[+OFF][:LEN][:ACCESS]" (docs/watch.md), for every CPU and task,
// until the test ends. The test fails if it is refused. There can be as many as one likes, unless
// Lab().Watches.Registers is set.
func (m *Machine) Watch(place string, handler watch.Handler) *watch.Watchpoint {
	m.t.Helper()
	w, err := m.lab.Watch(place, handler)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { _ = w.Close() }) // of a closed machine it is gone anyway
	return w.Watchpoint
}

// Kretprobe registers a return probe at "SYM[:MAXACTIVE]" and unregisters it
// at the test's end. Each handler may be nil. A refusal ends the test.
func (m *Machine) Kretprobe(place string, entry, ret kprobes.ReturnHandler) *kprobes.Kretprobe {
	m.t.Helper()
	rp, err := m.lab.Kretprobe(place, entry, ret)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { m.lab.Kprobes.UnregisterKretprobe(rp.Kretprobe) })
	return rp.Kretprobe
}

// Override makes a function return a value at once, without running: it registers
// a probe at its entry that sends the CPU to a return instruction, as the kernel's
// fault injection and bpf_override_return do. The kernel lets these override only the
// functions that it lists (ALLOW_ERROR_INJECTION); here it is any. The probe has a
// post handler, for a jump would ignore what its pre handler does. It is
// unregistered at the test's end; m.Kprobes().UnregisterKprobe ends it before.
func (m *Machine) Override(function string, value uint64) *kprobes.Kprobe {
	m.t.Helper()
	at, k := m.returns(), m.lab.Kprobes
	p := m.Kprobe(function, func(_ *kprobes.Kprobe, regs *x86.PtRegs) int {
		regs.AX, regs.IP = value, uint64(at)
		if k.Config().Step.HandlerResets {
			k.ResetCurrentKprobe()
		}
		return 1
	}, func(*kprobes.Kprobe, *x86.PtRegs, uint64) {})
	if s, ok := k.View().SymbolAt(p.Addr); !ok || !m.entry(p.Addr, s) {
		m.t.Fatalf("override of %s: it is not a function's entry, and the return address is not on top of the stack", function)
	}
	return p
}

// entry: nothing but an ENDBR is before the address in its function.
func (m *Machine) entry(at x86.Addr, s kimage.Symbol) bool {
	var b [4]byte
	past := at.Sub(s.Addr)
	return past == 0 || past == 4 && m.lab.Image.CodeAt(s.Addr, b[:]) == 4 && b == [4]byte{0xf3, 0x0f, 0x1e, 0xfa}
}

// returns is the address of a return instruction (just_return_func).
func (m *Machine) returns() x86.Addr {
	m.t.Helper()
	if m.ret == 0 {
		at, err := m.lab.Machine.AllocExec(1, "just_return_func")
		if err == nil {
			err = m.lab.Machine.PokeText(at, []byte{0xc3})
		}
		if err != nil {
			m.t.Fatal(err)
		}
		m.ret = at
	}
	return m.ret
}

// maxString is the most bytes that ReadString reads.
const maxString = 1 << 16

// ReadString returns the bytes from an address up to a zero byte. The test ends if unmapped memory
// comes first, or after 65,536 bytes.
func (m *Machine) ReadString(at x86.Addr) string {
	m.t.Helper()
	var text []byte
	var b [1]byte
	for len(text) < maxString {
		if err := m.lab.Machine.ReadMem(at.Add(int64(len(text))), b[:]); err != nil {
			m.t.Fatalf("string at %s: %v", at, err)
		}
		if b[0] == 0 {
			return string(text)
		}
		text = append(text, b[0])
	}
	m.t.Fatalf("string at %s: more than %d bytes", at, maxString)
	return ""
}

// ReadUint is the unsigned integer of 1, 2, 4 or 8 bytes at an address. The test
// ends where it cannot be read.
func (m *Machine) ReadUint(at x86.Addr, size int) uint64 {
	m.t.Helper()
	var b [8]byte
	if size != 1 && size != 2 && size != 4 && size != 8 {
		m.t.Fatalf("integer at %s: it has 1, 2, 4 or 8 bytes, not %d", at, size)
	}
	if err := m.lab.Machine.ReadMem(at, b[:size]); err != nil {
		m.t.Fatalf("integer at %s: %v", at, err)
	}
	return binary.LittleEndian.Uint64(b[:])
}

// Settle lets the kprobe optimizer do all that waits for it: probes that can be
// optimized become jumps, unregistered ones leave the text. It ends the test
// where the optimizer would wait for a task for ever.
func (m *Machine) Settle() {
	m.t.Helper()
	if err := m.lab.Kprobes.Settle(); err != nil {
		m.t.Fatal(err)
	}
}

// Symbol returns a symbol; the test ends if there is none of the name.
func (m *Machine) Symbol(name string) kimage.Symbol {
	m.t.Helper()
	s := m.lab.Image.Lookup(name)
	if len(s) == 0 {
		m.t.Fatalf("there is no symbol %s in %s", name, m.lab.Image.Name())
	}
	return s[0]
}
