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

// Machine is a kernel that a test may probe. Its methods that cannot fail
// end the test where they do. It belongs to the test's goroutine.
type Machine struct {
	t   testing.TB
	lab *kprobelab.Lab
}

// New makes a machine that runs the guest kernel, and has it checked and closed
// at the test's end: see the package's doc for what is checked. A nil o means the
// defaults.
func New(t testing.TB, o *kprobelab.Options) *Machine {
	t.Helper()
	return Open(t, "", o)
}

// Open is New for the image in a file. It ends the test where the image cannot
// be read.
func Open(t testing.TB, image string, o *kprobelab.Options) *Machine {
	t.Helper()
	l, err := kprobelab.Open(image, o)
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

// Lab is what the machine is made of: image, machine and kprobes.
func (m *Machine) Lab() *kprobelab.Lab { return m.lab }

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
