package run

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"kprobelab/errno"
	"kprobelab/internal/engine"
	"kprobelab/internal/process"
	"kprobelab/internal/userprobe"
	"kprobelab/machine"
	"kprobelab/profile"
	"kprobelab/watch"
)

// FirstPID is the number of a program's first process.
const FirstPID = process.FirstPID

// Program is a plan for a program without a kernel.
type Program struct {
	// Files has the program and what it can open; Args are its arguments, the program's name first.
	Files *Files
	Args  []string
	Env   []string
	Stdin []byte
	// Points come first, then Events, definitions for uprobe_events or probes in the words of the program's source. Names of
	// files in them begin in Dir where they are relative.
	Points []UserPoint
	Events []string
	Dir    string
	// PID is the process whose hits are wanted, 0 for all.
	PID int
	// Watches are planted in order. Registers is whether they take the four debug registers.
	Watches   []watch.Place
	Registers bool
	// Rules are the rules of the kernel release whose uprobes are emulated.
	Rules *profile.Config
	// Steps gives each step of a hit and each record, Counters the probes' counts at the end.
	Steps, Counters bool
	// Trace gets the content of the file trace in place of an event Traced, nil for the event.
	Trace func(text string) error
	// MaxOutput is the number of bytes that are kept of standard output, and of standard error; 0 means 64 MB.
	MaxOutput uint64

	// CPUModel, Seed, Budget and Timeout are of the machine (machine.Options). A Budget of 0 is ProgramBudget.
	CPUModel string
	Seed     int64
	Budget   uint64
	Timeout  time.Duration
}

// program is one run.
type program struct {
	plan  *Program
	rules *profile.Config
	feed
	trace  *userprobe.Trace
	probes *userprobe.Probes
	p      *process.Process
	places *places
	// watched are the watchpoints.
	watched []*Probe
}

// name is the program's.
func (r *program) name() string { return path.Base(r.plan.Files.program.Name) }

// Check looks whether the plan can be done for some program; a kernel without uprobes refuses them.
func (p *Program) Check() error {
	switch {
	case p.PID != 0 && p.PID < FirstPID:
		return misused("--pid %d: the first process has the number %d", p.PID, FirstPID)
	case p.Timeout < 0:
		return misused("--timeout %s: a time cannot be negative", p.Timeout)
	case p.Registers && len(p.Watches) == 0:
		return misused("--registers goes with --watch")
	}
	if !p.Rules.Uprobes.Exists && (len(p.Points) > 0 || len(p.Events) > 0) {
		return refused(fmt.Errorf("a kernel of %s has no uprobes: %w", p.Rules.Name, errno.ENOSYS))
	}
	return nil
}

// Run plants the probes, runs the program, and gives what happened. The error is an *Error, an *ExitError where nothing but
// the program's exit code is not 0, or the engine's.
func (p *Program) Run(to Sink) error {
	if err := p.Check(); err != nil {
		return err
	}
	plan := *p
	p = &plan
	p.Budget = cmp.Or(p.Budget, ProgramBudget)
	var err error
	if p.Events, err = p.Files.definitions(p.Rules, p.Events); err != nil {
		return err
	}
	r := &program{plan: p, rules: p.Rules, feed: feed{to}}
	r.probes = userprobe.New(r.rules)
	r.trace = userprobe.NewTrace(r.rules, r.probes, p.Files.all()...)
	r.trace.Dir = p.Dir
	if err := r.define(); err != nil {
		return err
	}
	if err := r.load(); err != nil {
		return err
	}
	defer r.p.Close()
	r.trace.Attach(r.p)
	r.places = newPlaces(r.p)
	r.put(Started{Name: r.name(), Names: Names{
		Place: r.places.place, Task: func(int) (int, string) { return r.p.TID(), r.p.Comm() },
	}})
	r.observe()
	if err := r.watch(); err != nil {
		return err
	}
	r.probes.OnLog = func(line string) { r.log("kernel", line) }
	x, err := r.p.Run()
	r.put(Done{})
	r.printed()
	switch {
	case err == nil:
		err = r.ended(x)
	case !errors.Is(err, machine.ErrEngine):
		err = refused(fmt.Errorf("%s: %w", p.Args[0], OneLine(err)))
	}
	return errors.Join(err, r.traced())
}

// load loads the program.
func (r *program) load() error {
	p := r.plan
	e, err := engine.Named("")
	if err != nil {
		return err
	}
	if list := e.CPUModels(); p.CPUModel != "" && !slices.Contains(list, strings.ToLower(p.CPUModel)) {
		return misused("--cpu %s: a program's processor is one of %s", p.CPUModel, strings.Join(list, ", "))
	}
	r.p, err = process.New(process.Config{
		Program: p.Files.program, Args: p.Args, Env: p.Env, Files: p.Files.others, Stdin: p.Stdin, Release: r.rules.Name, Tracer: r.probes,
		MaxOutput: int(min(p.MaxOutput, 1<<30)),
		Options:   machine.Options{Seed: p.Seed, Budget: p.Budget, Timeout: p.Timeout, CPUModel: p.CPUModel},
	}, e.New)
	var missing *process.NoInterpreterError
	switch {
	case err == nil, errors.Is(err, machine.ErrEngine):
		return err
	case errors.As(err, &missing):
		err = fmt.Errorf("%w; --file %s gives it, and its libraries have to be given, too", err, missing.Interpreter)
	}
	return unusable(err)
}

// printed gives what the program wrote, and what became of the probes.
func (r *program) printed() {
	for i, of := range []func() ([]byte, int){r.p.Stdout, r.p.Stderr} {
		b, lost := of()
		if len(b) > 0 || lost > 0 {
			r.put(Wrote{FD: i + 1, Data: b, All: true, Lost: lost})
		}
	}
	if r.plan.Counters {
		r.counters()
	}
}

// traced gives the file trace.
func (r *program) traced() error {
	if len(r.trace.Events()) == 0 {
		return nil
	}
	return r.feed.traced(r.trace.Text(), r.plan.Trace)
}

// ended makes the program's end an error unless its exit code is 0.
func (r *program) ended(x process.Exit) error {
	e := &ExitError{Program: r.plan.Args[0], Code: x.Code, Signal: int(x.Signal), IP: x.Regs.IP}
	if x.Signal != 0 {
		e.Code = 128 + e.Signal
	}
	r.put(Exited{e.Program, e.Code})
	if e.Code == 0 {
		return nil
	}
	return e
}
