package run

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"kprobelab/boot"
	"kprobelab/booted"
	"kprobelab/internal/bounded"
	"kprobelab/internal/callsyntax"
	"kprobelab/internal/mailbox"
	"kprobelab/kimage"
	"kprobelab/watch"
)

// Kernel is a plan for an image, or for the dump of a booted kernel. The zero value of a field asks for nothing.
type Kernel struct {
	// Probes and then Watches are planted in order. Registers is whether the watchpoints take the four debug registers.
	Probes    []KernelProbe
	Watches   []watch.Place
	Registers bool
	// Points are uprobes of a booted kernel's own, in its processes. Stats gives the content of uprobe_profile at the end.
	Points []UserPoint
	Stats  bool
	// Events are definitions for kprobe_events, or probes that name lines and variables of the source. For a booted kernel,
	// they may also be definitions for its own uprobe_events and dynamic_events. Tracefs is written to the files of tracing
	// before the events are enabled; if all events are the kernel's own, to the kernel's own files.
	Events  []string
	Tracefs []boot.TraceWrite
	// Debuginfo is the file with the DWARF in which names of the source are looked up, "" for the DWARF of the image and of
	// Modules.
	Debuginfo string
	Modules   []string
	// Jobs are calls and programs in order; Tasks are sequences of calls, 'a(); b()', that run at once. A task more makes
	// the calls of Jobs then.
	Jobs  []Job
	Tasks []string
	// As is the task of a booted kernel that makes the calls: its process number or its name.
	As string
	// NoPost gives kprobes no post handler. NoSettle does not let the jump optimizer run before the calls.
	NoPost, NoSettle bool
	// Sysctls are set first, NAME=VALUE.
	Sysctls []string
	// Dmesg gives the lines that a booted kernel has logged. Steps gives each step of a hit, Records what is written to the
	// ring buffer of tracing.
	Dmesg, Steps, Records bool
	// Trace gets the content of the file trace in place of an event Traced, nil for the event.
	Trace func(text string) error

	// CPUs, Seed, Budget, Timeout and Slice are of the machine (kprobelab.Options); a Slice that is not 0 counts each
	// instruction. A Budget of 0 is CallBudget, or ProgramBudget where the kernel's own programs run or events are.
	CPUs    int
	Seed    int64
	Budget  uint64
	Timeout time.Duration
	Slice   uint64
}

// KernelProbe is a kprobe or a kretprobe, not planted yet.
type KernelProbe struct{ probe callsyntax.Probe }

// Kprobe reads SYM[+OFF] or 0xADDR.
func Kprobe(text string) (KernelProbe, error) {
	p, err := callsyntax.ParseKprobe(text)
	return KernelProbe{p}, err
}

// Kretprobe reads SYM[:MAXACTIVE].
func Kretprobe(text string) (KernelProbe, error) {
	p, err := callsyntax.ParseKretprobe(text)
	return KernelProbe{p}, err
}

// String names the probe as the command line does.
func (p KernelProbe) String() string { return p.probe.String() }

// The usual bounds on the instructions of a call, and of a program.
const (
	CallBudget    = 100_000_000
	ProgramBudget = 2_000_000_000
	// HostBudget is of a HostProgram: tools load and verify BPF programs.
	HostBudget = 20_000_000_000
)

// Job is a call, name(arg, ...), or a program of a booted kernel. Text is the call, or what the program is called in events.
type Job struct {
	Text string
	// Program is nil for a call. Its Stdout and Stderr are the run's.
	Program *booted.Program
	// Host, if not nil, is the program with files of the host, and is run in place of Program.
	Host *HostProgram
}

// ParseJob reads a call, or a program with its arguments as a shell cuts them into words: it begins with an absolute path.
func ParseJob(text string) (Job, error) {
	j := Job{Text: text}
	if begin := strings.TrimLeft(text, " \t\n\"'\\"); !strings.HasPrefix(begin, "/") {
		return j, nil
	}
	c, err := mailbox.Program(mailbox.Exec, text, nil)
	if err != nil {
		return j, misused("%w", err)
	}
	j.Program = &booted.Program{Args: c.Args, Env: c.Env}
	return j, nil
}

// ProgramJob is a program with its arguments, and more environment, NAME=VALUE.
func ProgramJob(args []string, env ...string) Job {
	return Job{Text: mailbox.Line(args), Program: &booted.Program{Args: args, Env: slices.Concat(mailbox.Environment, env)}}
}

// ownEvents are a booted kernel's own: of points, and definitions for its uprobe_events and dynamic_events.
type ownEvents struct {
	points  []UserPoint
	events  []string
	tracefs []boot.TraceWrite
	stats   bool
}

func (u *ownEvents) any() bool { return len(u.points)+len(u.events) > 0 }

// divided takes the booted kernel's own events out of the plan.
func (p *Kernel) divided() (Kernel, ownEvents) {
	rest, own := *p, ownEvents{points: p.Points, stats: p.Stats}
	rest.Events = nil
	for _, line := range p.Events {
		if IsKernelsEvent(line) {
			own.events = append(own.events, line)
		} else {
			rest.Events = append(rest.Events, line)
		}
	}
	if own.any() && len(rest.Events) == 0 {
		own.tracefs, rest.Tracefs = rest.Tracefs, nil
	}
	if rest.Budget == 0 {
		rest.Budget = CallBudget
		if own.any() || slices.ContainsFunc(p.Jobs, func(j Job) bool { return j.Program != nil }) {
			rest.Budget = ProgramBudget // what defines an event may wait for the kernel's other work
		}
		if slices.ContainsFunc(p.Jobs, func(j Job) bool { return j.Host != nil }) {
			rest.Budget = HostBudget
		}
	}
	return rest, own
}

// Check looks whether the plan can be done on some kernel.
func (p *Kernel) Check() error {
	switch {
	case p.CPUs < 0 || p.CPUs > bounded.CPUs:
		return misused("--cpus %d: there can be 1 to %d CPUs", p.CPUs, bounded.CPUs)
	case p.Timeout < 0:
		return misused("--timeout %s: a time cannot be negative", p.Timeout)
	case slices.ContainsFunc(p.Events, func(e string) bool { return strings.TrimSpace(e) == "" }):
		return misused("-e needs a definition, such as 'p:name vfs_read'")
	case p.Registers && len(p.Watches) == 0:
		return misused("--registers goes with --watch")
	}
	_, own := p.divided()
	switch {
	case own.any() && p.As != "":
		return misused("--as does not go with uprobes of a booted kernel")
	case own.any() && p.Trace != nil:
		return misused("--trace-output does not go with uprobes of a booted kernel")
	}
	for i := range p.Jobs {
		if err := p.Jobs[i].check(); err != nil {
			return err
		}
	}
	for _, s := range p.Sysctls {
		if _, _, err := parseSysctl(s, p.guest()); err != nil {
			return misused("--sysctl %w", err)
		}
	}
	return nil
}

// guest reports whether the plan has programs of the host on a booted kernel.
func (p *Kernel) guest() bool {
	return slices.ContainsFunc(p.Jobs, func(j Job) bool { return j.Host != nil })
}

// OptimizationSysctl is the one sysctl that kprobes have.
const OptimizationSysctl = "debug.kprobes-optimization"

// parseSysctl reads NAME=VALUE as sysctl(8) does. The kernel's own file is asked about the value, and in a guest about
// the name.
func parseSysctl(text string, guest bool) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	switch {
	case !ok || name == "":
		return "", "", fmt.Errorf("%q: want NAME=VALUE", text)
	case strings.ReplaceAll(name, "/", ".") == OptimizationSysctl:
		name = OptimizationSysctl
	case !guest:
		return "", "", fmt.Errorf("%q: there is no such sysctl here, only %s", name, OptimizationSysctl)
	}
	return name, strings.TrimSpace(value), nil
}

// ErrTraceWrite is a text that is no write to a file of tracing.
var ErrTraceWrite = errors.New("want FILE=TEXT, the file's path in the folder of tracing, as trace_options=stacktrace")

// ParseTraceWrites reads writes to files of tracing.
func ParseTraceWrites(list []string) ([]boot.TraceWrite, error) {
	var writes []boot.TraceWrite
	for _, s := range list {
		file, text, ok := strings.Cut(s, "=")
		if !ok || file == "" || file != strings.TrimPrefix(path.Clean("/"+file), "/") {
			return nil, misused("--tracefs %q: %w", s, ErrTraceWrite)
		}
		writes = append(writes, boot.TraceWrite{File: file, Text: text})
	}
	return writes, nil
}

// needsDump says what needs the memory dump of a booted kernel.
func needsDump(img *kimage.Image, what string) error {
	return unusable(fmt.Errorf("%s: %s needs the memory dump of a booted kernel; kprobelab boot makes one", img.Name(), what))
}
