package tracing

import (
	"fmt"
	"io/fs"
	"sync"

	"kprobelab/errno"
	"kprobelab/internal/orc"
	"kprobelab/internal/tracing/fetch"
	"kprobelab/internal/tracing/ring"
	"kprobelab/kimage"
	"kprobelab/kimage/btf"
	"kprobelab/kprobes"
	"kprobelab/profile"
	"kprobelab/x86"
)

// Machine is the traced machine. A kprobes.Machine has all its methods.
type Machine interface {
	// NumCPU is the number of CPUs, CPU the number of the CPU that runs now, Task the number of the
	// task that runs now.
	NumCPU() int
	CPU() int
	Task() int
	// Now is the virtual clock, in nanoseconds since boot.
	Now() uint64
	// ReadMem reads all of b, or fails.
	ReadMem(addr x86.Addr, b []byte) error
	// GSBase is a CPU's GS base; a per-CPU variable is at it plus the address of its symbol.
	GSBase(cpu int) x86.Addr
}

// Source is the part of an image beyond a View; kimage.Image has it.
type Source interface {
	// Types returns the kernel's BTF; nil if it has none.
	Types() *btf.Types
	// Modules names the loaded modules.
	Modules() []string
}

// Options are the choices of New; the zero value of each is its default.
type Options struct {
	// BufferSize is the size of each CPU's ring buffer, in bytes.
	BufferSize int
	// Memory is the most that trace buffers, events and texts that are being
	// read may take together, in bytes: DefaultMemory by default. What would
	// take more is ENOMEM.
	Memory int
	// Task returns a task's process ID, and its name of at most 15 bytes, by its number. By default
	// the ID is one more than the number, and the name "init" for the first task, "task-N" for
	// others. It is called at every hit.
	Task func(n int) (pid int, comm string)
	// NoTasks: the running task is unknown; a filter on its name or number is EINVAL.
	NoTasks bool
	// Source has prototypes and modules; may be nil.
	Source Source
	// Record receives each record of an event that is written to the top trace buffer; may be nil.
	// It may not use the tree.
	Record func(*Record)
	// Files returns the size of a file in which a uprobe may be. The error is ENOENT if there is no
	// such file, EINVAL if it is no regular file. nil means that there are no files.
	Files func(name string) (size int64, err error)
	// Log receives the lines that the kernel would log, without a newline.
	Log func(line string)
}

// Tracing is the tracing subsystem of one machine: its kprobe events, its
// trace buffers, and the tree of files over both.
//
// Everything that may touch the machine happens with mu held: file
// operations, and guest code that Do runs. A read that waits does not hold it.
type Tracing struct {
	mu sync.Mutex
	k  *kprobes.Kprobes
	m  Machine
	o  Options
	// c and p are the modelled kernel.
	c *profile.Tracing
	p *profile.Config

	// events are in the order of their making, probes too (dyn_event_list).
	events []*probeEvent
	probes []*probe
	ids    map[int]bool
	// top is the trace buffer of the tracing folder itself.
	top       *traceArray
	instances []*traceArray

	stack  stackTracer
	closed bool
	memory memory

	comms comms
	// recorder makes it, scratch is where; word is for reading memory.
	recorder fetch.Recorder
	scratch  [ring.MaxRecord]byte
	word     [8]byte
	// pid and comm are the task whose hit is handled.
	pid  int
	comm string
	// tracer is the trace array's state that triggers change during a hit.
	tracer tracer
	// preempt is the place of a CPU's preempt count, relative to its GS base; 0: unknown.
	preempt kimage.PreemptCounter
	// taskAt is the place of a CPU's pointer to its task, likewise.
	taskAt x86.Addr
	// notrace: functions without an ftrace site cannot be probed by events.
	notrace bool
	// unwinder finds callers; nil without ORC tables.
	unwinder *orc.Unwinder
}

// ErrClosed is the use of a Tracing after its Close. It is an fs.ErrClosed.
var ErrClosed error = closedError{}

type closedError struct{}

func (closedError) Error() string        { return "tracing is closed" }
func (closedError) Is(target error) bool { return target == fs.ErrClosed }

// usable is ErrClosed after Close. mu must be held.
func (t *Tracing) usable() error {
	if t.closed {
		return ErrClosed
	}
	return nil
}

// New makes the subsystem over kprobes on a machine. nil options mean the
// defaults. It fails with ENOSYS where the modelled kernel has no kprobe
// events.
func New(k *kprobes.Kprobes, m Machine, o *Options) (*Tracing, error) {
	p := k.Config()
	if !p.Tracing.Exists {
		return nil, fmt.Errorf("kernel %s has no kprobe events: %w", p.Name, errno.ENOSYS)
	}
	t := &Tracing{k: k, m: m, p: p, c: &p.Tracing, ids: map[int]bool{}, stack: stackTracer{filter: functionFilter{}}}
	if o != nil {
		t.o = *o
	}
	if t.o.Task == nil {
		t.o.Task = defaultTask()
	}
	t.comms.init()
	t.preempt, _ = kimage.PreemptCount(k.View().Lookup)
	t.taskAt, _ = kimage.CurrentTask(k.View().Lookup)
	if t.o.Source != nil {
		t.unwinder = orc.New(k.View().Lookup, t.o.Source.Types(), m.ReadMem)
	}
	_, sites := k.View().SiteIn(kimage.SiteFtrace, x86.Range{End: ^x86.Addr(0)})
	t.notrace = sites && p.Check.FtraceSites
	t.memory.left = t.o.Memory
	if t.memory.left == 0 {
		t.memory.left = DefaultMemory
	}
	var err error
	if t.top, err = newTraceArray(t, ""); err != nil {
		return nil, fmt.Errorf("trace buffers of %d CPUs: %w", m.NumCPU(), err)
	}
	return t, nil
}

// Do runs fn while no file operation is under way. Guest code has to be run by
// Do where others use the files at the same time.
func (t *Tracing) Do(fn func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fn()
}

// Close disables and removes all events, even those in use. Readers that wait
// see the end of the trace.
func (t *Tracing) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.closed = true
	for _, e := range t.events {
		for _, f := range e.files {
			f.triggers.Clear()
		}
	}
	for _, e := range t.events {
		for _, f := range e.files {
			_ = f.setEnabled(false)
		}
	}
	for len(t.probes) > 0 {
		t.remove(t.probes[0])
	}
	_ = t.k.TraceFunctions(nil, nil)
	for _, a := range t.arrays() {
		a.close()
	}
}

func (t *Tracing) printk(line string) {
	if t.o.Log != nil {
		t.o.Log(line)
	}
}
