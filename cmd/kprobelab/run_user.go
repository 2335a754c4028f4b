package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/internal/engine"
	"kprobelab/internal/place"
	"kprobelab/internal/process"
	"kprobelab/internal/tracing/definition"
	"kprobelab/internal/userevent"
	"kprobelab/internal/userprobe"
	"kprobelab/machine"
	"kprobelab/profile"
)

// userPlan is what the command line says of programs without a kernel.
type userPlan struct {
	probes []userPoint
	// events are definitions for a booted kernel's own uprobe_events and dynamic_events, tracefs what is
	// written to its other files.
	events, tracefs []string
	// pid is the process whose hits are wanted, 0 for all.
	pid            int
	files          []string
	program, stats bool
}

// userPoint is a probe as written: FILE:SYM[+OFF] or FILE:0xOFFSET.
type userPoint struct {
	file, place string
	returns     bool
}

// userFlag appends to the plan's probes, in the order of the command line.
type userFlag struct {
	plan    *userPlan
	returns bool
}

// Set implements cli.Value.
func (f *userFlag) Set(text string) error {
	file, place, ok := cutLast(text, ":")
	if !ok || file == "" || place == "" {
		return usagef("%q: want FILE:SYM[+OFF] or FILE:0xOFFSET", text)
	}
	f.plan.probes = append(f.plan.probes, userPoint{file, place, f.returns})
	return nil
}

// String implements cli.Value.
func (f *userFlag) String() string { return "" }

// Get implements cli.Value.
func (f *userFlag) Get() any { return nil }

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// asked reports whether the command runs a program without a kernel: with calls and programs of
// --exec, uprobes are a booted kernel's own.
func (u *userPlan) asked(p *plan) bool {
	return u.program || len(p.jobs) == 0 && (len(u.probes) > 0 || slices.ContainsFunc(p.events, isUserEvent))
}

// isUserEvent reports a definition of a uprobe.
func isUserEvent(line string) bool { return definition.IsUser(definition.Words(line)) }

// kernelFlags are those of run that a program without a kernel has no use for.
var kernelFlags = []string{
	"kprobe", "kretprobe", "call", "task", "exec", "as", "tracefs", "cpus", "slice", "no-post", "no-settle", "sysctl", "dmesg",
	"config", "live-text", "symbols", "module", "decoder", "debuginfo", "cwd",
}

// runUser runs the program.
func (p *plan) runUser(t *term, c *cli.Command) error {
	for _, name := range kernelFlags {
		if c.IsSet(name) {
			return usagef("--%s is for kernels, and PROGRAM runs without one", name)
		}
	}
	if c.Args().Len() == 0 {
		return usagef("there is no PROGRAM to run; try %s --help", c.FullName())
	}
	if err := errors.Join(notNegative(p.timeout), programPlace(p.env, "/")); err != nil {
		return err
	}
	if c.IsSet("uprobe-pid") && p.user.pid < process.FirstPID {
		return usagef("--uprobe-pid %d: the first process has the number %d", p.user.pid, process.FirstPID)
	}
	rules, _ := profile.Named("6.1")
	if name := c.String("kernel"); name != "" {
		var ok bool
		if rules, ok = profile.Named(name); !ok {
			return usagef("there is no profile %q: there are %s", name, strings.Join(profile.All(), ", "))
		}
	}
	if !rules.Uprobes.Exists && (len(p.user.probes) > 0 || len(p.events) > 0) {
		return &failure{exitRefused, fmt.Errorf("a kernel of %s has no uprobes: %w", rules.Name, errno.ENOSYS)}
	}
	if !c.IsSet("budget") {
		p.budget = execBudget
	}
	input, err := p.input()
	if err != nil {
		return err
	}
	r := &userRun{plan: p, t: t, rules: rules, stdin: input, cpu: c.String("cpu")}
	if err := r.read(c.Args().Slice()); err != nil {
		return err
	}
	return r.run()
}

// userRun is one run of a program without a kernel.
type userRun struct {
	plan    *plan
	t       *term
	rules   *profile.Config
	args    []string
	program *process.File
	files   []*process.File
	bytes   int // that all files have
	stdin   []byte
	// cpu is the model of --cpu, "" for the default.
	cpu    string
	trace  *userevent.Trace
	probes *userprobe.Probes
	p      *process.Process
	w      *bufio.Writer
	json   *jsonOutput
	// omitted counts the steps and records that were left out.
	omitted uint64
	// recording is nil where none is asked for.
	recording *recording
	watches   []*userWatch
}

// guestName is the name that the program knows a file of the host by.
func guestName(name string) (string, error) {
	abs, err := filepath.Abs(name)
	return filepath.ToSlash(abs), err
}

// read reads the program and its files.
func (r *userRun) read(args []string) error {
	r.args = args
	var err error
	if r.program, err = r.load(args[0], args[0]); err != nil {
		return err
	}
	for _, text := range r.plan.user.files {
		name, from, renamed := strings.Cut(text, "=")
		if !renamed {
			from = name
		}
		if st, err := os.Stat(from); err == nil && st.IsDir() {
			if err := r.folder(name, from); err != nil {
				return err
			}
			continue
		}
		f, err := r.load(name, from)
		if err != nil {
			return err
		}
		r.files = append(r.files, f)
	}
	return nil
}

// load reads one file of the host.
func (r *userRun) load(name, from string) (*process.File, error) {
	name, err := guestName(name)
	if err != nil {
		return nil, &failure{exitImage, err}
	}
	b, err := bounded.ReadFile(from, bounded.ProgramFile)
	if err != nil {
		return nil, &failure{exitImage, err}
	}
	if r.bytes += len(b); r.bytes > bounded.ProgramBytes {
		return nil, &failure{exitImage, fmt.Errorf("the files of --file have more than %d MB", bounded.ProgramBytes>>20)}
	}
	return &process.File{Name: name, Data: b}, nil
}

// folder reads the files of a folder and of those in it. Links are followed to files, not to folders; what is neither
// is left out, and so is what cannot be read.
func (r *userRun) folder(name, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // it is not there for the program
		}
		if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
			return nil
		}
		if len(r.files) >= bounded.ProgramFiles {
			return &failure{exitImage, fmt.Errorf("%s: --file takes %d files at most", from, bounded.ProgramFiles)}
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return &failure{exitImage, err}
		}
		f, err := r.load(filepath.Join(name, rel), path)
		switch {
		case errors.Is(err, fs.ErrPermission):
			return nil
		case err != nil:
			return err
		}
		r.files = append(r.files, f)
		return nil
	})
}

// named is the file of a probe.
func (r *userRun) named(name string) (*process.File, error) {
	guest, err := guestName(name)
	if err != nil {
		return nil, err
	}
	for _, f := range append([]*process.File{r.program}, r.files...) {
		if f.Name == guest {
			return f, nil
		}
	}
	return nil, &failure{exitRefused, fmt.Errorf("%s is neither the program nor a file of --file: %w", name, errno.ENOENT)}
}

// line is the definition of a probe in the language of uprobe_events.
func (r *userRun) line(u userPoint, taken map[string]int) (string, error) {
	f, err := r.named(u.file)
	if err != nil {
		return "", err
	}
	return u.definition(f.Name, f.Offset, taken)
}

// definition is the line of uprobe_events for a probe in a file of that name. taken counts the names of events.
func (u *userPoint) definition(file string, offsetOf func(symbol string) (uint64, error), taken map[string]int) (string, error) {
	kind := map[bool]string{false: "p", true: "r"}[u.returns]
	at, err := place.Parse(u.place)
	switch {
	case err != nil:
		return "", usagef("%s:%s: %w", u.file, u.place, err)
	case at.Symbol == "":
		return fmt.Sprintf("%s %s:0x%x", kind, file, uint64(at.Addr)+uint64(at.Offset)), nil
	}
	symbol, more := at.Symbol, uint64(at.Offset)
	offset, err := offsetOf(symbol)
	if err != nil {
		return "", &failure{exitRefused, err}
	}
	name := eventName(symbol)
	if more != 0 {
		name += fmt.Sprintf("_0x%x", more)
	}
	if u.returns {
		name += "__return"
	}
	name = name[:min(len(name), 56)]
	if taken[name]++; taken[name] > 1 {
		name += fmt.Sprintf("_%d", taken[name]-1)
	}
	return fmt.Sprintf("%s:%s %s:0x%x", kind, name, file, offset+more), nil
}

// eventName is a symbol as a C identifier.
func eventName(symbol string) string {
	b := []byte(symbol)
	for i, c := range b {
		if c != '_' && (c|0x20 < 'a' || 'z' < c|0x20) && (c < '0' || '9' < c || i == 0) {
			b[i] = '_'
		}
	}
	return string(b)
}

// define makes the events, of --uprobe first.
func (r *userRun) define() error {
	taken := map[string]int{}
	var lines []string
	for _, u := range r.plan.user.probes {
		line, err := r.line(u, taken)
		if err != nil {
			return err
		}
		lines = append(lines, line)
	}
	for _, line := range append(lines, r.plan.events...) {
		e, err := r.trace.Define(line)
		if err != nil {
			return r.refused(line, err)
		}
		if e.Hazard != "" {
			fmt.Fprintf(r.t.err, "%s %s: %s: %s\n", r.t.errStyle.red("warning:"), oneLine(errors.New(line)), e.Hazard, e.Hazard.Means())
		}
		if r.json != nil {
			planted := r.of("planted", e)
			planted.Hazard = string(e.Hazard)
			r.json.write(planted)
		}
	}
	if pid := r.plan.user.pid; pid != 0 {
		for _, e := range r.trace.Events() {
			e.Probe.Filter = r.probes.OfProcess(pid)
		}
	}
	if err := r.trace.Enable(); err != nil {
		return &failure{exitRefused, err}
	}
	return nil
}

// refused is the kernel's answer to a definition, with the caret of error_log.
func (r *userRun) refused(line string, err error) error {
	if r.json != nil {
		r.json.write(event{Event: "refused", Probe: line, Errno: -int(errno.Of(err)), Error: err.Error()})
	}
	var e *definition.Error
	if !errors.As(err, &e) {
		return &failure{exitRefused, fmt.Errorf("%s: %w", line, err)}
	}
	if e.ID != definition.NotLogged && e.ID != definition.NotAProbe {
		fmt.Fprintf(r.t.err, "trace_uprobe: error: %s\n  Command: %s\n%s^\n", e.ID.Text(&r.rules.Tracing), e.Command(), strings.Repeat(" ", 11+e.Column))
	}
	return &failure{exitRefused, err}
}

func (r *userRun) of(name string, e *userevent.Event) event {
	kind := "uprobe"
	if e.Return {
		kind = "uretprobe"
	}
	return event{Event: name, Kind: kind, Probe: e.Group + "/" + e.Event()}
}

// run plants the probes, runs the program, and prints what happened.
func (r *userRun) run() (err error) {
	w := bufio.NewWriter(r.t.out)
	r.w = w
	defer func() { err = errors.Join(err, w.Flush()) }()
	if r.plan.json {
		r.json = newJSON(w)
	}
	if r.recording, err = record(r.plan.perfetto); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.recording.close()) }()
	r.probes = userprobe.New(r.rules)
	r.trace = userevent.New(r.rules, r.probes, append([]*process.File{r.program}, r.files...)...)
	if r.trace.Dir, err = guestName("."); err != nil {
		return err
	}
	if err := r.define(); err != nil {
		return err
	}
	e, err := engine.Named("")
	if err != nil {
		return err
	}
	if list := e.CPUModels(); r.cpu != "" && !slices.Contains(list, strings.ToLower(r.cpu)) {
		return usagef("--cpu %s: a program's processor is one of %s", r.cpu, strings.Join(list, ", "))
	}
	p, err := process.New(process.Config{
		Program: r.program, Args: r.args, Env: r.plan.env, Files: r.files, Stdin: r.stdin, Release: r.rules.Name, Tracer: r.probes,
		MaxOutput: int(min(r.plan.maxOutput, 1<<30)),
		Options:   machine.Options{Seed: r.plan.seed, Budget: r.plan.budget, Timeout: r.plan.timeout, CPUModel: r.cpu},
	}, e.New)
	if err != nil {
		var missing *process.NoInterpreterError
		switch {
		case errors.Is(err, machine.ErrEngine):
			return err
		case errors.As(err, &missing):
			err = fmt.Errorf("%w; --file %s gives it, and its libraries have to be given, too", err, missing.Interpreter)
		}
		return &failure{exitImage, err}
	}
	defer p.Close()
	r.p = p
	r.trace.Attach(p)
	if err := r.watch(r.observe(p)); err != nil {
		return err
	}
	r.probes.OnLog = func(line string) { r.log(line) }
	x, err := p.Run()
	if r.omitted > 0 {
		r.log(fmt.Sprintf("%d steps and records more are not shown (--max-output)", r.omitted))
	}
	if r.print(w, p); err == nil {
		err = r.ended(x)
	} else if !errors.Is(err, machine.ErrEngine) {
		err = &failure{exitRefused, fmt.Errorf("%s: %w", r.args[0], oneLine(err))}
	}
	return errors.Join(err, r.traced(w))
}

func (r *userRun) hit(h *userevent.Hit) {
	name, at := "pre", h.At
	if h.Event.Return {
		name = "return"
	}
	e := r.of(name, h.Event).registers(h.Regs)
	e.Addr, e.PID, e.Task, e.Time, e.Detail = at.String(), &h.PID, &h.TID, &h.Time, h.Text
	if h.Event.Return {
		e.Value = hexWord(h.Regs.AX)
	}
	r.json.write(e)
}

func (r *userRun) log(line string) {
	if r.json != nil {
		r.json.log("kernel", line)
		return
	}
	fmt.Fprintln(r.t.err, line)
}

// print shows what the program wrote.
func (r *userRun) print(w *bufio.Writer, p *process.Process) {
	for i, of := range []func() ([]byte, int){p.Stdout, p.Stderr} {
		b, lost := of()
		switch {
		case len(b) == 0:
		case r.json != nil:
			_ = r.json.wrote(i+1, b) // flush says it again
		case i == 0:
			_ = w.Flush() // it says so again
			lost += r.pieces(r.t.rawOut, b)
		default:
			lost += r.pieces(r.t.rawErr, b)
		}
		if lost > 0 {
			r.log(fmt.Sprintf("%d bytes more were written, and are not shown (--max-output)", lost))
		}
	}
	if r.plan.user.stats {
		r.stats(w, p)
	}
}

// pieces writes what a program has written, up to the bound on output, and returns how much is left. Control characters
// become longer, so the bound is looked at after each piece.
func (r *userRun) pieces(to io.Writer, b []byte) (left int) {
	for len(b) > 0 && r.printed() < r.plan.maxOutput {
		n := min(len(b), pieceSize)
		if _, err := to.Write(b[:n]); err != nil {
			break
		}
		b = b[n:]
	}
	return len(b)
}

// stats prints what became of the probes.
func (r *userRun) stats(w io.Writer, p *process.Process) {
	s := &r.probes.Stats
	if r.json != nil {
		for _, e := range r.trace.Events() {
			n, c := e.Probe.Hits, r.of("counters", e)
			if e.Return {
				n = e.Probe.Returns
			}
			c.Hits, c.Nmissed = &n, &e.Probe.Missed
			r.json.write(c)
		}
		for _, w := range r.watches {
			c := w.event("counters")
			c.Hits = &w.Hits
			r.json.write(c)
		}
		return
	}
	fmt.Fprintf(w, "\n%s", r.trace.Profile())
	for _, one := range r.watches {
		fmt.Fprintf(w, "  watchpoint %s: hits %d\n", one.Place, one.Hits)
	}
	fmt.Fprintf(w, "  int3 %d: emulated %d, stepped %d; returns %d, left by longjmp %d\n", s.Hits, s.Emulated, s.Stepped, s.Returns, s.Unwound)
	if r.rules.Uprobes.OptimizesNop5 || r.rules.Uprobes.OptimizesNop10 {
		fmt.Fprintf(w, "  nops that became calls %d: hits by them %d\n", s.Optimized, s.Calls)
	}
	fmt.Fprintf(w, "  instructions %d, system calls %d\n", p.Machine().Instructions(), p.Syscalls)
	for _, nr := range slices.Sorted(maps.Keys(p.Unknown)) {
		if nr == process.UnknownRest {
			fmt.Fprintf(w, "  system calls of other numbers that do not exist here (ENOSYS): %d times\n", p.Unknown[nr])
			continue
		}
		fmt.Fprintf(w, "  system call %d does not exist here (ENOSYS): %d times\n", nr, p.Unknown[nr])
	}
}

// traced prints the file trace, or writes it.
func (r *userRun) traced(w io.Writer) error {
	if len(r.trace.Events()) == 0 {
		return nil
	}
	text := r.trace.Text()
	switch {
	case r.plan.traceOutput != "":
		if err := writeOutput(r.plan.traceOutput, []byte(text)); err != nil {
			return &failure{exitImage, err}
		}
	case r.json != nil:
		r.json.traced(text)
	default:
		fmt.Fprintf(w, "\n%s", text)
	}
	return nil
}

// ended makes the program's exit code the command's.
func (r *userRun) ended(x process.Exit) error {
	code := x.Code
	if x.Signal != 0 {
		code = 128 + int(x.Signal)
	}
	if r.json != nil {
		r.json.exited(r.args[0], code)
	}
	switch {
	case x.Signal != 0:
		return &failure{code, fmt.Errorf("%s was killed by signal %d at %#x", r.args[0], x.Signal, x.Regs.IP)}
	case code != 0:
		return &failure{code, fmt.Errorf("%s ended with exit code %d", r.args[0], code)}
	}
	return nil
}
