//go:build cgo && linux && amd64

package kprobestest

import (
	"strings"
	"testing"

	"kprobelab"
	"kprobelab/emu"
	"kprobelab/kimage"
	"kprobelab/kprobes"
)

// Options are the choices of a machine; the zero value of each is its default.
type Options struct {
	// Image is the file to run; empty means the guest kernel.
	Image string
	// Modules are files to load into module space (.ko or .o), in order.
	Modules []string
	// Kernel names the profile to follow ("6.1", profile.Names); empty means
	// the one that the image's facts choose.
	Kernel string
	// CPUs is how many there are, 1 by default.
	CPUs int
	// Seed decides every choice of the scheduler.
	Seed int64
	// Budget is how many instructions a call may execute, 100 million by
	// default.
	Budget uint64
	// CPU is the processor that the boot-time text is made for, as in
	// kimage.Options; the machine emulates the nearest one that the engine has.
	// qemu64 by default.
	CPU string
	// Optimize allows jump optimization, in kernels that have it; Settle lets
	// it happen. Without it every probe keeps its int3.
	Optimize bool
}

// Machine is a kernel that a test may probe. A method that returns no error
// ends the test where it fails. It belongs to the test's goroutine.
type Machine struct {
	t   testing.TB
	lab *kprobelab.Lab
}

// New makes a machine, which is checked and closed at the test's end; the
// package's doc says what is checked. A nil o means the defaults. New ends the
// test where the image cannot be read.
func New(t testing.TB, o *Options) *Machine {
	t.Helper()
	if o == nil {
		o = &Options{}
	}
	l, err := kprobelab.Open(o.Image, &kprobelab.Options{
		Modules: o.Modules, Profile: o.Kernel, CPU: o.CPU,
		CPUs: o.CPUs, Seed: o.Seed, Budget: o.Budget, Optimize: o.Optimize,
	})
	if err != nil {
		t.Fatalf("kprobestest: %v", err)
	}
	m := &Machine{t: t, lab: l}
	t.Cleanup(func() {
		t.Helper()
		m.check()
		l.Close()
	})
	return m
}

// Image is the code under test.
func (m *Machine) Image() *kimage.Image { return m.lab.Image }

// Emu is the machine itself: memory, tasks, the clock.
func (m *Machine) Emu() *emu.Machine { return m.lab.Machine }

// Kprobes is the subsystem. What is registered with it directly has to be
// unregistered before the test ends.
func (m *Machine) Kprobes() *kprobes.Kprobes { return m.lab.Kprobes }

// Call calls a function and returns rax; the arguments are as for emu's Call:
// integers, strings, []byte (copied in and back), *emu.Buf, x86.Addr. A call
// that fails ends the test; Try is for those that are meant to.
func (m *Machine) Call(name string, args ...any) uint64 {
	m.t.Helper()
	v, err := m.Try(name, args...)
	if err != nil {
		m.t.Fatalf("call of %s: %s", name, strings.TrimPrefix(err.Error(), name+": "))
	}
	return v
}

// Try is Call with the error: an *emu.Fault, an *emu.BudgetError, or what went
// wrong in a hit.
func (m *Machine) Try(name string, args ...any) (uint64, error) {
	return m.lab.Call(name, args...)
}

// Kprobe registers a probe at "SYM[+OFF]" or "0xADDR" and unregisters it at
// the test's end. Each handler may be nil. A refusal ends the test.
func (m *Machine) Kprobe(place string, pre kprobes.PreHandler, post kprobes.PostHandler) *kprobes.Kprobe {
	m.t.Helper()
	kp, err := m.lab.Kprobe(place, pre, post)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { m.lab.Kprobes.UnregisterKprobe(kp) })
	return kp
}

// Kretprobe registers a return probe at "SYM[:MAXACTIVE]" and unregisters it
// at the test's end. Each handler may be nil. A refusal ends the test.
func (m *Machine) Kretprobe(place string, entry, ret kprobes.ReturnHandler) *kprobes.Kretprobe {
	m.t.Helper()
	rp, err := m.lab.Kretprobe(place, entry, ret)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { m.lab.Kprobes.UnregisterKretprobe(rp) })
	return rp
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

// Symbol is the address of a symbol; the test ends where there is none.
func (m *Machine) Symbol(name string) kimage.Symbol {
	m.t.Helper()
	s := m.lab.Image.Lookup(name)
	if len(s) == 0 {
		m.t.Fatalf("there is no symbol %s in %s", name, m.lab.Image.Name())
	}
	return s[0]
}
