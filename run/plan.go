package run

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"kprobelab/boot"
	"kprobelab/internal/callsyntax"
	"kprobelab/kimage"
	"kprobelab/watch"
)

// Kernel is a plan for an image, or for the dump of a booted kernel. The zero value of a field asks for nothing.
type Kernel struct {
	// Probes and then Watches are planted in order. Registers is whether the watchpoints take the four debug registers.
	Probes    []KernelProbe
	Watches   []watch.Place
	Registers bool
	// Events are definitions for kprobe_events. Tracefs is written to the files of tracing before the events are enabled.
	Events  []string
	Tracefs []boot.TraceWrite
	// Uprobes are the uprobes of a booted kernel's own, of its processes.
	Uprobes Uprobes
	// Jobs are calls and programs in order; Tasks are sequences of calls, 'a(); b()', that run at once. A task more makes
	// the calls of Jobs then.
	Jobs  []Job
	Tasks []string
	// As is the task of a booted kernel that makes the calls: its process number or its name.
	As string
	// Env, Dir and Stdin are for programs: more environment, the folder they begin in, what they read.
	Env   []string
	Dir   string
	Stdin []byte
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
	// instruction.
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

// Job is a call, name(arg, ...), or a program with its arguments.
type Job struct {
	Text    string
	Program bool
}

// Uprobes are a booted kernel's own.
type Uprobes struct {
	// Points come first, then Events, definitions for uprobe_events and dynamic_events. Tracefs is written to its other files.
	Points  []UserPoint
	Events  []string
	Tracefs []boot.TraceWrite
	// Stats gives the content of uprobe_profile, too.
	Stats bool
}

// Any reports whether there are any.
func (u *Uprobes) Any() bool { return len(u.Points)+len(u.Events) > 0 }

// OptimizationSysctl is the one sysctl that kprobes have.
const OptimizationSysctl = "debug.kprobes-optimization"

// parseSysctl reads NAME=VALUE as sysctl(8) does; the kernel's own file is
// asked about the value.
func parseSysctl(text string) (value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	name = strings.ReplaceAll(strings.TrimSpace(name), "/", ".")
	switch {
	case !ok:
		return "", fmt.Errorf("%q: want NAME=VALUE", text)
	case name != OptimizationSysctl:
		return "", fmt.Errorf("%q: there is no such sysctl here, only %s", name, OptimizationSysctl)
	}
	return strings.TrimSpace(value), nil
}

// CheckSysctl looks whether Sysctls can have the text.
func CheckSysctl(text string) error {
	_, err := parseSysctl(text)
	return err
}

// ErrTraceWrite is a text that is no write to a file of tracing.
var ErrTraceWrite = errors.New("want FILE=TEXT, the file's path in the folder of tracing, as trace_options=stacktrace")

// ParseTraceWrites reads writes to files of tracing.
func ParseTraceWrites(list []string) ([]boot.TraceWrite, error) {
	var writes []boot.TraceWrite
	for _, s := range list {
		file, text, ok := strings.Cut(s, "=")
		if !ok || file == "" || file != strings.TrimPrefix(path.Clean("/"+file), "/") {
			return nil, fmt.Errorf("%q: %w", s, ErrTraceWrite)
		}
		writes = append(writes, boot.TraceWrite{File: file, Text: text})
	}
	return writes, nil
}

// needsDump says what needs the memory dump of a booted kernel.
func needsDump(img *kimage.Image, what string) error {
	return unusable(fmt.Errorf("%s: %s needs the memory dump of a booted kernel; kprobelab boot makes one", img.Name(), what))
}
