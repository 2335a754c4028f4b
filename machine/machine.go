package machine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"kprobelab/internal/contract"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// Machine is a guest: memory, CPUs, tasks. Close frees it.
type Machine struct {
	engine Engine
	sh     *contract.Shared // the engine's
	src    Source
	opt    Options
	// booted is the engine where the kernel has booted, else nil.
	booted Booted
	// ownedFirst is the process's own memory at the first run of a booted kernel, wroteTooMuch that a run has added too much to it.
	ownedFirst   int64
	wroteTooMuch atomic.Bool
	watch        func(hits []WatchHit, regs *x86.PtRegs)
	// watched is the list of watch, shown are the instructions of ShowExecuted without a booted kernel.
	watched []Watch
	shown   []x86.Addr

	cpus    []*cpu
	cur     *cpu
	curCPU  int
	curTask int
	tasks   []*Task
	regions []x86.Range
	heap    heap
	user    heap
	stacks  x86.Range
	exec    x86.Range

	// execNext is the end of the executable pages, execPart the free part of the page that small
	// pieces share.
	execNext x86.Addr
	execPart x86.Range
	preempt  kimage.PreemptCounter
	stubs    stubs
	symbols  []kimage.Symbol
	extable  exceptionTable
	onLog    func(line string)
	onPoke   func(at x86.Addr, n int)
	onSync   func(cpu int)
	traps    x86.Traps
	switched func(cpu int, t *Task)
	until    func() bool // of RunUntil
	random   *rand.PCG
	rng      *rand.Rand
	err      error
	failed   []error // of tasks, since the last Run
	onWait   func(w Wait) error
	onTaken  func(at []x86.Addr)
	// tellsExecuted: a booted kernel's engine tells executed.
	tellsExecuted bool
	// executed are the receivers of OnExecuted, by their number.
	executed  map[int]func(*x86.PtRegs)
	receivers int
	wait      Wait
	waitAsked uint64 // when onWait was called
	snapshots []*Snapshot
	restored  []func()
	spare     []contract.State // room for the registers of interrupted runs
	// closed: no more runs. gone: no more memory.
	closed, gone bool
	extended     int // windows of Extend
	// allowed is the bound of Shared.Work for one run.
	allowed uint64
	// aim is the instruction count at which the current run ends.
	aim uint64
	// runs is the number of runs that have begun and not ended: the engine's runs inside its hooks,
	// and runs that a receiver of faults began between two of them.
	runs int
	last x86.PtRegs
	// accessed and access are the address and the kind of the last fault's access.
	accessed x86.Addr
	access   Access
	// taken is true during a run; receiving, while the run calls its caller between two runs of the
	// engine (shared.go).
	taken     atomic.Bool
	receiving bool
}

// cpu is a processor of the engine, with the machine's own state of it.
type cpu struct {
	CPU
	n      int
	answer *contract.Answer
	// task is the task whose registers the CPU has, nil if there is none.
	task *Task
	// area is its per-CPU area, gs its GS base, preempt the address of its
	// preempt count (0 where the image has none).
	area, gs, preempt x86.Addr
	// local is its own page after the area, words the page's memory.
	local x86.Addr
	words []uint64
	// stale is poked text of which it may have old translations.
	stale []x86.Range
}

// New makes a machine with src in its memory, on the engine that open makes. nil
// options mean the defaults. The caller closes the machine.
func New(src Source, o *Options, open func(h *Host) (Engine, error)) (*Machine, error) {
	m := &Machine{src: src, extable: exceptionTableOf(src), heap: newHeap(), user: newHeap()}
	if o != nil {
		m.opt = *o
	}
	if err := m.opt.Fill(); err != nil {
		return nil, err
	}
	m.allowed = workAllowance(m.opt.Budget)
	m.random = rand.NewPCG(uint64(m.opt.Seed), 0)
	m.rng = rand.New(m.random)
	var err error
	if m.engine, err = open(&Host{m}); err != nil {
		return nil, err
	}
	m.sh = m.engine.Shared()
	if err := m.build(); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (m *Machine) build() error {
	if b, ok := m.src.(BootedSource); ok && b.Core() != nil {
		return m.buildBooted()
	}
	if err := m.layImage(); err != nil {
		return layoutError(err)
	}
	if err := m.open(); err != nil {
		return err
	}
	if err := m.layPerCPU(); err != nil {
		return layoutError(err)
	}
	for _, c := range m.cpus {
		if err := c.Boot(c.gs); err != nil {
			return fmt.Errorf("cpu %d: %w", c.n, err)
		}
	}
	if err := m.makeStubs(); err != nil {
		return err
	}
	_, err := m.newTask("boot")
	return err
}

// open makes the CPUs.
func (m *Machine) open() error {
	for n := range m.opt.CPUs {
		c, err := m.engine.Open()
		if err != nil {
			return fmt.Errorf("cpu %d: %w", n, err)
		}
		m.cpus = append(m.cpus, &cpu{CPU: c, n: n, answer: c.Answer()})
	}
	m.cur = m.cpus[0]
	return nil
}

// layoutError makes it the image's fault, unless it is the engine's.
func layoutError(err error) error {
	if errors.Is(err, ErrEngine) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrLayout, err)
}

// Close frees the machine's memory and engine. A second Close does nothing.
// It is ErrInUse, and nothing is closed, when a handler calls it, or a goroutine while another one's call
// runs: the engine is still running.
func (m *Machine) Close() error {
	if m.gone {
		return nil
	}
	if m.taken.Load() && !m.closed {
		return ErrInUse
	}
	m.closed, m.gone = true, true
	m.engine.Close()
	m.sh = &contract.Shared{}
	m.cpus, m.tasks, m.regions, m.snapshots, m.spare = nil, nil, nil, nil, nil
	return nil
}

// Engine names the engine that executes the guest's code, and its version.
func (m *Machine) Engine() string { return m.engine.Name() }

// NumCPU returns the number of CPUs. All are online.
func (m *Machine) NumCPU() int { return len(m.cpus) }

// CPU returns the number of the running CPU, or of the CPU that ran last.
func (m *Machine) CPU() int { return m.curCPU }

// Where returns pointers to the current CPU and task numbers, so that a hit can
// read them without a call.
func (m *Machine) Where() (cpu, task *int) { return &m.curCPU, &m.curTask }

// Task returns the number of the running task, or of the task that ran last, from 0.
func (m *Machine) Task() int { return m.curTask }

// Now is the virtual clock, in nanoseconds since boot. An instruction takes one
// (counted as its block begins), a trap Options.TrapCost; while every task
// sleeps, the clock moves on to the next wake-up. It is 0 once closed.
func (m *Machine) Now() uint64 { return m.sh.Now() }

// Instructions returns the number of instructions since boot, counted by blocks. It is 0 once the
// machine is closed.
func (m *Machine) Instructions() uint64 { return m.sh.Instrs }

// BlockBegun returns the number of instructions that ran before the running block, for code that is called while the guest
// executes.
func (m *Machine) BlockBegun() uint64 { return m.sh.Begun }

// Crossings returns the number of traps and call-outs that called Go. It is 0 once the machine is
// closed.
func (m *Machine) Crossings() uint64 { return m.sh.Crossings }

// Regs returns the registers at the end of the last call, or at the last fault.
func (m *Machine) Regs() x86.PtRegs { return m.last }

// GSBase returns a CPU's GS base. A per-CPU variable is at GSBase plus the address of its symbol.
// It is 0 if there is no such CPU.
func (m *Machine) GSBase(cpu int) x86.Addr {
	if cpu < 0 || cpu >= len(m.cpus) {
		return 0
	}
	return m.cpus[cpu].gs
}

// SetTraps installs the receiver of the CPUs' traps; nil removes it.
func (m *Machine) SetTraps(t x86.Traps) { m.traps = t }

// Console returns the bytes that the guest wrote to the console port since the last call of
// Console. Lines stay whole when several tasks print at once.
func (m *Machine) Console() []byte {
	if m.gone {
		return nil
	}
	return m.engine.Console()
}

// setTask makes the n-th task the running one.
func (m *Machine) setTask(n int) {
	m.curTask = n
	m.sh.Task = int32(n)
}
