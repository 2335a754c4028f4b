package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/profile"
	"kprobelab/run"
)

// wantsProgram reports whether the command runs a program without a kernel: with calls and programs of
// --exec, uprobes are a booted kernel's own.
func (p *plan) wantsProgram() bool {
	return p.isProgram || len(p.Jobs) == 0 && (len(p.Uprobes.Points) > 0 || slices.ContainsFunc(p.Events, run.IsUserEvent))
}

// ofProgram looks whether probes without calls are meant for a program: IMAGE is one then. What is said of
// it in the words of the source becomes definitions of uprobes; a kernel's probes are refused.
func (p *plan) ofProgram(c *cli.Command) error {
	asked := p.wantsProgram()
	if !asked && len(p.Jobs)+len(p.Tasks) > 0 || len(p.Probes)+len(p.Events)+len(p.Watches) == 0 || len(operands(c)) == 0 {
		return nil
	}
	program := operand(c, 0)
	s, err := run.OpenSource(program, programRules(c))
	for _, line := range p.Events {
		if asked && err != nil && !run.IsUserEvent(line) {
			return usagef("%q: want p[:[GRP/]EVENT] PATH:OFFSET; a place in the words of the source is looked for in the program: %w", line, err)
		}
	}
	if err != nil {
		return nil // a kernel's image, or the reader of images says what it is
	}
	switch {
	case asked:
	case len(p.Probes) > 0:
		return usagef("--kprobe and --kretprobe are for kernels, and %s is a program: give --uprobe or --uretprobe %s:%s",
			program, withSlash(program), p.Probes[0].String())
	case len(p.Watches) > 0 && len(p.Events) == 0:
		return usagef("%s is a program: give --program to run it", program)
	}
	var lines []string
	for _, line := range p.Events {
		list, err := s.Definitions(line)
		if misuse := (*run.Error)(nil); err != nil && !errors.As(err, &misuse) {
			err = sourceError(err)
		}
		if err != nil {
			return err
		}
		lines = append(lines, list...)
	}
	p.Events = lines
	return nil
}

// programRules returns the rules of the kernel that --profile names, or the rules of the default kernel.
func programRules(c *cli.Command) *profile.Config {
	if rules, ok := profile.Named(c.String("profile")); ok {
		return rules
	}
	rules, _ := profile.Named(profile.Default)
	return rules
}

func withSlash(path string) string {
	if strings.Contains(path, "/") {
		return path
	}
	return "./" + path
}

// ofKernel makes the events that are a booted kernel's own the plan's Uprobes: of its processes, and
// what is neither a kprobe nor a uprobe.
func (p *plan) ofKernel(c *cli.Command) error {
	for _, line := range p.Events {
		if run.IsKernelsEvent(line) {
			p.Uprobes.Events = append(p.Uprobes.Events, line)
		}
	}
	p.Events = slices.DeleteFunc(p.Events, run.IsKernelsEvent)
	if !p.Uprobes.Any() {
		return nil
	}
	if !c.IsSet("budget") {
		p.Budget = execBudget // what defines an event may wait for the kernel's other work
	}
	for _, name := range []string{"as", "file", "trace-output", "uprobe-pid"} {
		if c.IsSet(name) {
			return usagef("--%s does not go with uprobes of a booted kernel", name)
		}
	}
	if len(p.Probes)+len(p.Watches)+len(p.Events) > 0 {
		return nil
	}
	for _, name := range []string{"steps", "perfetto"} {
		if c.IsSet(name) {
			return usagef("--%s shows hits of our own probes, and a booted kernel's uprobes are its own: "+
				"add a --kprobe on what it does there, as uprobe_notify_resume or arch_uprobe_pre_xol, or run the program without a kernel", name)
		}
	}
	return nil
}

// kernelFlags are flags of run that a program without a kernel has no use for.
var kernelFlags = []string{
	"kernel", "kprobe", "kretprobe", "call", "task", "exec", "as", "tracefs", "cpus", "slice", "no-post", "no-settle", "sysctl", "dmesg",
	"config", "live-text", "symbols", "module", "decoder", "debuginfo", "cwd",
}

// runProgram runs the program.
func (p *plan) runProgram(t *term, c *cli.Command) error {
	for _, name := range kernelFlags {
		if c.IsSet(name) {
			return usagef("--%s is for kernels, and PROGRAM runs without one", name)
		}
	}
	if c.Args().Len() == 0 {
		return usagef("there is no PROGRAM to run; try %s --help", c.FullName())
	}
	if err := errors.Join(notNegative(p.Timeout), programPlace(p.Env, "/")); err != nil {
		return err
	}
	if c.IsSet("uprobe-pid") && p.pid < run.FirstPID {
		return usagef("--uprobe-pid %d: the first process has the number %d", p.pid, run.FirstPID)
	}
	rules, err := profileOf(c, profile.Default)
	if err != nil {
		return err
	}
	if !c.IsSet("budget") {
		p.Budget = execBudget
	}
	input, err := programInput(p.stdin)
	if err != nil {
		return err
	}
	program := run.Program{
		Args: c.Args().Slice(), Env: p.Env, Stdin: input, Points: p.Uprobes.Points, Events: p.Events, PID: p.pid,
		Watches: p.Watches, Registers: p.Registers, Rules: rules, Counters: p.Uprobes.Stats, MaxOutput: p.maxOutput,
		CPUModel: c.String("cpu"), Seed: p.Seed, Budget: p.Budget, Timeout: p.Timeout,
	}
	if err := program.Check(); err != nil {
		return err
	}
	if program.Files, err = run.OpenFiles(c.Args().First()); err != nil {
		return err
	}
	for _, f := range p.files {
		if err := program.Files.Add(f); err != nil {
			return err
		}
	}
	if program.Dir, err = run.GuestName("."); err != nil {
		return err
	}
	return p.printed(t, run.NewText(t.out, p.text(t)), func(to run.Sink) error {
		program.Steps, program.Trace = p.Steps, p.Trace
		return program.Run(to)
	})
}
