//go:build cgo && linux && amd64

package emu

// #include <stdlib.h>
// #include "shim.h"
import "C"

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"unsafe"

	"kprobelab/kimage"
	"kprobelab/x86"
)

// Machine is a guest: memory, CPUs, tasks. Close frees it.
type Machine struct {
	c   *C.kpl_machine
	src Source
	// b is what there is beside if the kernel has booted, else nil.
	b   *booted
	opt Options

	cpus    []*cpu
	cur     *cpu
	curCPU  int
	curTask int
	tasks   []*Task
	regions []*region
	recent  *region
	heap    heap
	user    heap
	stacks  *region
	exec    *region

	// execNext is the end of the executable pages, execPart what is free of the
	// page that small pieces share.
	execNext  x86.Addr
	execPart  x86.Range
	stubs     stubs
	symbols   []kimage.Symbol
	extable   exceptionTable
	onLog     func(line string)
	onPoke    func(at x86.Addr, n int)
	onSync    func(cpu int)
	traps     x86.Traps
	switched  func(cpu int, t *Task)
	until     func() bool // of RunUntil
	rng       *rand.Rand
	err       error
	failed    []error // of tasks, since the last Run
	snapshots []*Snapshot
	restored  []func()
	closed    bool
	// budget is the instruction count at which the run fails.
	budget uint64
	// allowed is the work of the host that one run may make beside instructions.
	allowed uint64
	// runs is how many runs have begun and not ended: those of the engine inside
	// its hooks, and those that a receiver of faults began between two of them.
	runs int
	last x86.PtRegs
	// taken is true while a run goes on; receiving, while it asks its caller
	// between two runs of the engine (shared.go).
	taken     atomic.Bool
	receiving bool
}

// New makes a machine with src in its memory, ready to run. nil options mean the
// defaults. The caller closes the machine.
func New(src Source, o *Options) (*Machine, error) {
	m := &Machine{src: src, extable: exceptionTableOf(src), heap: newHeap(), user: newHeap()}
	if o != nil {
		m.opt = *o
	}
	if b, ok := src.(Booted); ok && b.Core() != nil {
		m.b = newBooted(b.Core())
	}
	if err := m.opt.Fill(); err != nil {
		return nil, err
	}
	model, err := cpuModel(m.opt.CPUModel)
	if err != nil {
		return nil, err
	}
	rescue()
	m.allowed = workAllowance(m.opt.Budget)
	m.rng = rand.New(rand.NewPCG(uint64(m.opt.Seed), 0))
	if m.c = (*C.kpl_machine)(C.calloc(1, C.sizeof_kpl_machine)); m.c == nil {
		return nil, ErrNoMemory
	}
	m.c.handle = C.uintptr_t(register(m))
	if m.opt.EveryInstruction {
		m.c.every = 1
	}
	if m.opt.FreeHits {
		m.c.free_hits = 1
	}
	m.c.trap_cost = C.uint64_t(m.opt.TrapCost)
	if err := m.build(model); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (m *Machine) build(model int) error {
	lay := m.layImage
	if m.b != nil {
		lay = m.layBooted
	}
	if err := lay(); err != nil {
		return layoutError(err)
	}
	for n := range m.opt.CPUs {
		if err := m.open(model); err != nil {
			return fmt.Errorf("cpu %d: %w", n, err)
		}
	}
	m.cur = m.cpus[0]
	m.c.cur = m.cur.c
	if m.b != nil {
		return m.goOn()
	}
	if err := m.layPerCPU(); err != nil {
		return layoutError(err)
	}
	for _, c := range m.cpus {
		if err := c.boot(); err != nil {
			return fmt.Errorf("cpu %d: %w", c.n, err)
		}
	}
	if err := m.makeStubs(); err != nil {
		return err
	}
	_, err := m.newTask("boot")
	return err
}

// layoutError makes it the image's fault, unless it is the engine's.
func layoutError(err error) error {
	if errors.Is(err, ErrEngine) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrLayout, err)
}

// Close frees the machine's memory and engines. A second Close does nothing.
// Close panics when a handler calls it, or a goroutine while another one's call
// runs, because the engine is still running.
func (m *Machine) Close() {
	if m.c == nil {
		return
	}
	if m.taken.Load() && !m.closed {
		panic("emu: Close called from a handler, or while another goroutine uses the machine")
	}
	m.closed = true
	for _, c := range m.cpus {
		c.close()
	}
	for _, t := range m.tasks {
		C.free(unsafe.Pointer(t.saved))
	}
	for _, r := range m.regions {
		r.free()
	}
	if m.b != nil {
		m.b.free()
	}
	unregister(uintptr(m.c.handle))
	C.kpl_machine_free(m.c)
	m.c, m.cpus, m.tasks, m.regions, m.recent, m.snapshots = nil, nil, nil, nil, nil, nil
}

// NumCPU is how many CPUs there are. All are online.
func (m *Machine) NumCPU() int { return len(m.cpus) }

// CPU is the number of the running CPU, or of the one that ran last.
func (m *Machine) CPU() int { return m.curCPU }

// Where returns pointers to the current CPU and task numbers, so that a hit can
// read them without a call.
func (m *Machine) Where() (cpu, task *int) { return &m.curCPU, &m.curTask }

// Task is the number of the running task, or of the one that ran last, from 0.
func (m *Machine) Task() int { return m.curTask }

// Now is the virtual clock, in nanoseconds since boot. An instruction takes one
// (counted as its block begins), a trap Options.TrapCost; while every task
// sleeps, the clock moves on to the next wake-up. It is 0 once closed.
func (m *Machine) Now() uint64 {
	if m.c == nil {
		return 0
	}
	return uint64(m.c.instrs + m.c.extra)
}

// Instructions is how many instructions ran since boot, counted by blocks. It is
// 0 once closed.
func (m *Machine) Instructions() uint64 {
	if m.c == nil {
		return 0
	}
	return uint64(m.c.instrs)
}

// Crossings is how many traps and callouts called into Go. It is 0 once closed.
func (m *Machine) Crossings() uint64 {
	if m.c == nil {
		return 0
	}
	return uint64(m.c.crossings)
}

// Regs is the frame at the end of the last call, or at the last fault.
func (m *Machine) Regs() x86.PtRegs { return m.last }

// GSBase is where a CPU's per-CPU variables are: add the address of a
// variable's symbol. It is 0 where there is no such CPU.
func (m *Machine) GSBase(cpu int) x86.Addr {
	if cpu < 0 || cpu >= len(m.cpus) {
		return 0
	}
	return m.cpus[cpu].gs
}

// SetTraps installs the receiver of the CPUs' traps; nil removes it.
func (m *Machine) SetTraps(t x86.Traps) { m.traps = t }

// Console is what the guest wrote to the console port since the last call of
// Console. Lines stay whole when several tasks print at once.
func (m *Machine) Console() []byte {
	if m.c == nil {
		return nil
	}
	C.kpl_console_flush(m.c)
	b := C.GoBytes(unsafe.Pointer(m.c.console), C.int(m.c.nconsole))
	C.kpl_console_clear(m.c)
	return b
}
