package interp

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"unsafe"

	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/x86"
)

// Machine is a guest: memory, CPUs, tasks. Close frees it.
type Machine struct {
	src machine.Source
	opt machine.Options

	cpus    []*cpu
	cur     *cpu
	curCPU  int
	curTask int
	tasks   []*Task
	regions []*region
	recent  *region
	reads   tlb
	writes  tlb
	heap    heap
	user    heap
	stacks  *region
	exec    *region

	// execNext is the end of the executable pages, execPart what is free of the
	// page that small pieces share.
	execNext x86.Addr
	execPart x86.Range
	stubs    stubs
	// outerEnd is what a function that the host called returns to, innerEnd the
	// same for a run inside a handler.
	outerEnd, innerEnd x86.Addr
	symbols            []kimage.Symbol
	extable            exceptionTable
	gates              gates
	ngates             int
	console            console
	onLog              func(line string)
	onPoke             func(at x86.Addr, n int)
	onSync             func(cpu int)
	traps              x86.Traps
	switched           func(cpu int, t *Task)
	until              func() bool // of RunUntil
	random             *rand.PCG
	rng                *rand.Rand
	entropy            *rand.PCG // of rdrand
	err                error
	failed             []error // of tasks, since the last Run
	undo               []saved
	track              bool // a snapshot exists: save a page when it is first written
	snapshots          []*Snapshot
	restored           []func()
	back               *journal // nil: changes are not logged
	closed, gone       bool

	// instrs counts instructions, a block's as it begins; the virtual clock is
	// instrs + extra nanoseconds.
	instrs, extra uint64
	crossings     uint64
	// stopAt is the count before which the run stops, budget that at which it
	// fails.
	stopAt atomic.Uint64
	budget uint64
	// work is what took the host's time beside instructions, allowance how much
	// of it a run may make, allowed how much one begins with.
	work, allowance, allowed uint64
	expired                  atomic.Bool
	// runs is how many runs have begun and not ended.
	runs int
	last x86.PtRegs
	// taken is true while a run goes on; inside counts the calls of receivers and
	// handlers that it is in.
	taken  atomic.Bool
	inside atomic.Int32
}

// Engine names the engine.
func Engine() string { return "interp" }

// New makes a machine with src in its memory, ready to run. nil options mean the
// defaults. The caller closes the machine.
func New(src machine.Source, o *machine.Options) (*Machine, error) {
	if one := uint16(1); *(*byte)(unsafe.Pointer(&one)) != 1 {
		return nil, fmt.Errorf("%w: the host's processor is big-endian", machine.ErrEngine)
	}
	m := &Machine{src: src, extable: exceptionTableOf(src), heap: newHeap(), user: newHeap()}
	if o != nil {
		m.opt = *o
	}
	if err := m.opt.Fill(); err != nil {
		return nil, err
	}
	model, err := modelNamed(m.opt.CPUModel)
	if err != nil {
		return nil, err
	}
	m.flushTLB()
	m.allowed = workAllowance(m.opt.Budget)
	m.random = rand.NewPCG(uint64(m.opt.Seed), 0)
	m.rng = rand.New(m.random)
	m.entropy = rand.NewPCG(uint64(m.opt.Seed), 1)
	if err := m.build(model); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *Machine) build(model *cpuModel) error {
	if err := m.laySegments(m.src.Segments()); err != nil {
		return layoutError(err)
	}
	if err := m.layRest(); err != nil {
		return layoutError(err)
	}
	for range m.opt.CPUs {
		m.open(model)
	}
	m.cur = m.cpus[0]
	if err := m.layPerCPU(); err != nil {
		return layoutError(err)
	}
	if err := m.makeStubs(); err != nil {
		return err
	}
	_, err := m.newTask("boot")
	return err
}

// open adds a CPU as a booted kernel leaves it: paging, write protection, SSE.
func (m *Machine) open(model *cpuModel) {
	c := &cpu{m: m, n: len(m.cpus), has: model}
	c.blocks.init()
	c.blocks.c = c
	c.mxcsr, c.fpu, c.flags = 0x1f80, bootFPU, x86.FlagFixed
	c.sys = newSystem(model)
	m.cpus = append(m.cpus, c)
}

// layoutError makes it the image's fault.
func layoutError(err error) error {
	if errors.Is(err, machine.ErrEngine) {
		return err
	}
	return fmt.Errorf("%w: %w", machine.ErrLayout, err)
}

// Close frees the machine's memory. A second Close does nothing. Close panics when
// a handler calls it, or a goroutine while another one's call runs.
func (m *Machine) Close() {
	if m.gone {
		return
	}
	if m.taken.Load() && !m.closed {
		panic("interp: Close called from a handler, or while another goroutine uses the machine")
	}
	m.closed, m.gone = true, true
	m.cpus, m.tasks, m.regions, m.recent, m.snapshots, m.undo, m.back = nil, nil, nil, nil, nil, nil, nil
	m.flushTLB()
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

func (m *Machine) now() uint64 { return m.instrs + m.extra }

// Now is the virtual clock, in nanoseconds since boot. An instruction takes one
// (counted as its block begins), a trap Options.TrapCost; while every task
// sleeps, the clock moves on to the next wake-up. It is 0 once closed.
func (m *Machine) Now() uint64 {
	if m.gone {
		return 0
	}
	return m.now()
}

// Instructions is how many instructions ran since boot, counted by blocks. It is
// 0 once closed.
func (m *Machine) Instructions() uint64 {
	if m.gone {
		return 0
	}
	return m.instrs
}

// Crossings is how many traps and callouts called a receiver. It is 0 once closed.
func (m *Machine) Crossings() uint64 {
	if m.gone {
		return 0
	}
	return m.crossings
}

// Regs is the frame at the end of the last call, or at the last fault.
func (m *Machine) Regs() x86.PtRegs { return m.last }

// GSBase is where a CPU's per-CPU variables are: add the address of a
// variable's symbol. It is 0 where there is no such CPU.
func (m *Machine) GSBase(cpu int) x86.Addr {
	if cpu < 0 || cpu >= len(m.cpus) {
		return 0
	}
	return m.cpus[cpu].base
}

// SetTraps installs the receiver of the CPUs' traps; nil removes it.
func (m *Machine) SetTraps(t x86.Traps) { m.traps = t }
