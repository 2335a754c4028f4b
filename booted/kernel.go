// Package booted runs a booted kernel from its memory dump, and has the operations that an image alone does not allow.
//
// The kernel's own init runs programs (Exec). System calls go through the kernel's own entry (SystemCall), as the task
// of the dump or as another one (As). Its own code fires tracepoints and makes their records. A run that would sleep
// for ever ends with an AsleepError.
//
// It must not know where a dump comes from, nor the packages that plant probes.
package booted

import (
	"encoding/binary"
	"errors"

	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/x86"
)

// ErrNotBooted: the image is no dump of a booted kernel.
var ErrNotBooted = errors.New("this image is no memory dump of a booted kernel")

// Kernel is a booted kernel on a machine. It is for one goroutine at a time, as the machine is.
type Kernel struct {
	image   *kimage.Image
	machine *machine.Machine
	kprobes *kprobes.Kprobes

	// user is memory for the buffers of system calls.
	user arena
	// as is the task of As, nil where the machine stands in the one that the dump
	// stopped in.
	as *kimage.Task
	// hasRun: init has run a program, and has its priority still.
	hasRun bool
	// records are of events, nil before there is one.
	records *records
	// waits is of a run that waits.
	waits waits
	// init is the init of the kernel.
	init initTask
	// executions are the instructions that a module's watch sees.
	executions executions
	// layout is of types that a module's watch reads, nil before there was one.
	layout *moduleLayout
	// super is the task of the supervisor of programs, 0 without one.
	super x86.Addr
}

// New is the booted kernel that a machine runs, with the subsystem that probes it. The error is
// ErrNotBooted where the image is no dump of one.
func New(img *kimage.Image, m *machine.Machine, k *kprobes.Kprobes) (*Kernel, error) {
	if img.Core() == nil {
		return nil, ErrNotBooted
	}
	b := &Kernel{image: img, machine: m, kprobes: k}
	b.executions.k = b
	m.OnRestore(func() {
		b.executions.end()
		b.user, b.as, b.waits, b.hasRun = arena{}, nil, waits{}, false
	})
	b.watchSleep()
	return b, nil
}

// Release is the kernel's release, as uname -r says it.
func (k *Kernel) Release() string { return k.image.Release() }

// call calls a function of the kernel. The error is the machine's, or the error of a hit that failed.
func (k *Kernel) call(name string, args ...any) error {
	_, err := k.machine.Call(name, args...)
	if hit := k.kprobes.ClearErr(); err == nil {
		err = hit
	}
	return err
}

// Link is an attachment to the kernel: a tracepoint's callback, an event's records.
type Link struct{ remove func() error }

// Close takes it away. Of a Link that is closed already it does nothing.
func (l *Link) Close() error {
	if l.remove == nil {
		return nil
	}
	remove := l.remove
	l.remove = nil
	return remove()
}

// pointer reads a pointer of the kernel's memory, 0 where there is none.
func (k *Kernel) pointer(at x86.Addr) x86.Addr {
	var b [8]byte
	if k.machine.ReadMem(at, b[:]) != nil {
		return 0
	}
	return x86.Addr(binary.LittleEndian.Uint64(b[:]))
}
