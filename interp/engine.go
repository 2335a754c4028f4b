package interp

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"unsafe"

	"kprobelab/internal/contract"
	"kprobelab/internal/cpumodel"
	"kprobelab/machine"
	"kprobelab/x86"
)

// shared has the counters.
type shared = contract.Shared

// engine is memory and CPUs.
type engine struct {
	shared
	host *machine.Host
	opt  *machine.Options
	has  *cpumodel.Model

	cpus    []*cpu
	regions []*region
	recent  *region
	reads   tlb
	writes  tlb
	watch   watch
	console console
	entropy *rand.PCG // of rdrand
	undo    []saved
	b       *booted // nil of a machine whose kernel has not booted
	track   bool    // save a page when it is first written
	// inside counts the calls of the host that it is in.
	inside atomic.Int32
}

// Engine names the engine.
func Engine() string { return "interp" }

// New makes a machine with src in its memory, ready to run. nil options mean the
// defaults. The caller closes the machine.
func New(src machine.Source, o *machine.Options) (*machine.Machine, error) {
	return machine.New(src, o, open)
}

func open(h *machine.Host) (machine.Engine, error) {
	e, err := newEngine(h)
	if err != nil {
		return nil, err
	}
	if of, ok := h.Source().(machine.BootedSource); ok && of.Core() != nil {
		e.b = newBooted(e, of)
		return bootedEngine{e}, nil
	}
	return e, nil
}

func newEngine(h *machine.Host) (*engine, error) {
	if one := uint16(1); *(*byte)(unsafe.Pointer(&one)) != 1 {
		return nil, fmt.Errorf("%w: the host's processor is big-endian", machine.ErrEngine)
	}
	e := &engine{host: h, opt: h.Options()}
	var err error
	if e.has, err = cpumodel.Named(e.opt.CPUModel); err != nil {
		return nil, err
	}
	e.flushTLB()
	e.entropy = rand.NewPCG(uint64(e.opt.Seed), 1)
	return e, nil
}

func (e *engine) Name() string             { return Engine() }
func (e *engine) Shared() *contract.Shared { return &e.shared }
func (e *engine) Console() []byte          { return e.console.take() }
func (e *engine) Here() bool               { return e.inside.Load() > 0 }
func (e *engine) Aim(n uint64)             { e.StopAt.Store(n) }
func (e *engine) NewState() contract.State { return new(state) }

// Open adds a CPU as a booted kernel leaves it: paging, write protection, SSE.
func (e *engine) Open() (machine.CPU, error) {
	c := &cpu{e: e, n: len(e.cpus), has: e.has}
	c.blocks.init()
	c.reads, c.writes = &e.reads, &e.writes
	c.mxcsr, c.fpu, c.flags = 0x1f80, bootFPU, x86.FlagFixed
	c.sys = newSystem(e.has)
	e.cpus = append(e.cpus, c)
	if e.b != nil && e.b.cur == nil {
		e.b.cur = c
	}
	return c, nil
}

func (e *engine) Close() {
	e.cpus, e.regions, e.recent, e.undo, e.b = nil, nil, nil, nil, nil
	e.flushTLB()
}

// addWork: the run ends before its next block once that is too much, or its time
// is up.
func (e *engine) addWork(n uint64) {
	e.Work += n
	if e.Work > e.Allowance || e.Expired.Load() != 0 {
		e.StopAt.Store(0)
	}
}
