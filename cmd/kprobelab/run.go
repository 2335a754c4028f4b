package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"kprobelab/boot"
	"kprobelab/internal/bounded"
	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/run"
)

func runCommand(t *term) *cli.Command {
	p := &plan{}
	return &cli.Command{
		Name:        "run",
		Usage:       "plant kprobes and kretprobes, call kernel functions, watch the handlers run",
		ArgsUsage:   "[IMAGE | PROGRAM [ARGS]]",
		Description: described("run"),
		Flags: append([]cli.Flag{
			&cli.GenericFlag{Name: "kprobe", Value: &probeFlag{plan: p, parse: run.Kprobe},
				Usage: "probe the instruction at `SYM[+OFF]` or 0xADDR (repeatable)"},
			&cli.GenericFlag{Name: "kretprobe", Value: &probeFlag{plan: p, parse: run.Kretprobe},
				Usage: "probe the return of the function at `SYM[:MAXACTIVE]` (repeatable)"},
			&cli.GenericFlag{Name: "watch", Value: &watchFlag{&p.Watches},
				Usage: "watch accesses to `SYM[+OFF][:LEN][:ACCESS]` or mem:ADDR[/LEN][:ACCESS]; ACCESS is r, w, rw or x (repeatable)"},
			&cli.BoolFlag{Name: "registers", Destination: &p.Registers,
				Usage: "let --watch have what the processor's four debug registers can have, refused as by the kernel's register_wide_hw_breakpoint"},
			&cli.StringSliceFlag{Name: "event", Aliases: []string{"e"}, Destination: &p.Events,
				Usage: "define and enable a kprobe `EVENT`, as written to kprobe_events or as for probe -D; prints the trace (repeatable)"},
			&cli.GenericFlag{Name: "uprobe", Value: &userFlag{to: &p.Uprobes.Points},
				Usage: "probe the instruction of a program or library at `FILE:SYM[+OFF]` or FILE:0xOFFSET (repeatable)"},
			&cli.GenericFlag{Name: "uretprobe", Value: &userFlag{to: &p.Uprobes.Points, returns: true},
				Usage: "probe the return of the function of a program or library at `FILE:SYM` or FILE:0xOFFSET (repeatable)"},
			&cli.IntFlag{Name: "uprobe-pid", Destination: &p.pid,
				Usage: "probe only the process `PID` of the program's: 100 is the first, 101 what it forks first (default: all)"},
			&cli.BoolFlag{Name: "program", Destination: &p.isProgram, Usage: "run a program without a kernel, also where nothing is probed"},
			&cli.StringSliceFlag{Name: "file", Destination: &p.files,
				Usage: "let the program without a kernel open this `FILE`, or the files of a folder, as NAME=FILE by another name (repeatable)"},
			&cli.BoolFlag{Name: "stats", Destination: &p.Uprobes.Stats, Usage: "of a program without a kernel, print what became of its probes and system calls"},
			&cli.StringFlag{Name: "trace-output", Destination: &p.traceOutput, Usage: "write the file trace to `FILE` as it is, and do not print it"},
			&cli.StringSliceFlag{Name: "tracefs", Destination: &p.tracefs,
				Usage: "write to a file of tracing before the events of -e are enabled, as `FILE=TEXT`: trace_options=stacktrace (repeatable)"},
			&cli.GenericFlag{Name: "call", Value: &jobFlag{plan: p}, Usage: "make this `CALL` (repeatable)"},
			&cli.StringFlag{Name: "as", Destination: &p.As, Usage: "on a booted kernel, make the calls as this task: its `PID` or its name"},
			&cli.GenericFlag{Name: "exec", Value: &jobFlag{plan: p, program: true},
				Usage: "on a booted kernel, run a program of its files to its end, as `'PROGRAM ARGS'` (repeatable)"},
			&cli.StringSliceFlag{Name: "env", Destination: &p.Env, Usage: "more environment for --exec, `NAME=VALUE` (repeatable)"},
			&cli.StringFlag{Name: "cwd", Value: "/", Destination: &p.Dir, Usage: "the `FOLDER` that --exec begins in"},
			&cli.StringFlag{Name: "stdin", Destination: &p.stdin, Usage: "what the program of --exec reads, from `FILE`, - for standard input"},
			&cli.StringSliceFlag{Name: "task", Destination: &p.Tasks,
				Usage: "add a task that makes these `CALLS`, 'a(); b()' (repeatable)"},
			&cli.IntFlag{Name: "cpus", Value: 1, Destination: &p.CPUs, Usage: "number of `CPUS`"},
			&cli.Uint64Flag{Name: "slice", Destination: &p.Slice, HideDefault: true,
				Usage: "let the scheduler switch tasks after so many `INSTRUCTIONS`, counted one by one, as 1 (default: 1000, by blocks)"},
			&cli.Int64Flag{Name: "seed", Destination: &p.Seed, Usage: "`SEED` of the scheduler's choices"},
			&cli.Uint64Flag{Name: "budget", Value: 100_000_000, Destination: &p.Budget,
				Usage: "stop a call after this many guest `INSTRUCTIONS` (with --exec 2 billion, and a program, too)"},
			timeoutFlag(&p.Timeout),
			&cli.Uint64Flag{Name: "max-output", Value: bounded.Output, Destination: &p.maxOutput,
				Usage: "print no more hits and log lines after this many `BYTES`, and say how many are missing"},
			&cli.BoolFlag{Name: "no-post", Destination: &p.NoPost,
				Usage: "give the kprobes no post handler (kernels without PREEMPTION boost such a probe)"},
			&cli.BoolFlag{Name: "no-settle", Destination: &p.NoSettle,
				Usage: "do not let the jump optimizer run before the calls: probes wait in its queue for its timer"},
			&cli.StringSliceFlag{Name: "sysctl", Destination: &p.Sysctls,
				Usage: "set a sysctl first, `NAME=VALUE`: debug.kprobes-optimization=0 (repeatable)"},
			&cli.StringFlag{Name: "perfetto", Destination: &p.perfetto,
				Usage: "write a trace for Perfetto to `FILE` (JSON lines, if it ends in .jsonl): hits, returns, text pokes"},
			&cli.BoolFlag{Name: "dmesg", Destination: &p.Dmesg, Usage: "on a booted kernel, print what each call and program made it log"},
			&cli.BoolFlag{Name: "steps", Destination: &p.steps, Usage: "show each hit as numbered steps, for learners"},
			&cli.BoolFlag{Name: "json", Destination: &p.json, Usage: "one JSON object a line: planted, pre, post, return, call, counters, …"},
			rawFlag(t), decoderFlag("x86asm"), debuginfoFlag(),
		}, imageFlags()...),
		Action: func(_ context.Context, c *cli.Command) error { return t.differences(p.run(t, c)) },
	}
}

// plan is what the command line asks for.
type plan struct {
	// Kernel is the plan for a kernel. Its Events and Uprobes may be a program's.
	run.Kernel
	// tracefs are the values of the flag.
	tracefs []string
	// traceOutput is the file for the text of trace, empty to print it.
	traceOutput string
	// stdin is the file that programs read.
	stdin       string
	maxOutput   uint64
	steps, json bool
	// perfetto is the file for a trace, empty for none.
	perfetto string
	// pid, files and isProgram are of a program without a kernel.
	pid       int
	files     []string
	isProgram bool
}

// probeFlag appends to the plan's probes, so that their order is the command
// line's across both flags.
type probeFlag struct {
	plan  *plan
	parse func(string) (run.KernelProbe, error)
}

// Set implements cli.Value.
func (f *probeFlag) Set(text string) error {
	p, err := f.parse(text)
	if err == nil {
		f.plan.Probes = append(f.plan.Probes, p)
	}
	return err
}

// String implements cli.Value.
func (f *probeFlag) String() string { return "" }

// Get implements cli.Value.
func (f *probeFlag) Get() any { return nil }

// jobFlag appends to the plan's jobs, so that their order is the command line's
// across both flags.
type jobFlag struct {
	plan    *plan
	program bool
}

// Set implements cli.Value.
func (f *jobFlag) Set(text string) error {
	f.plan.Jobs = append(f.plan.Jobs, run.Job{Text: text, Program: f.program})
	return nil
}

// String implements cli.Value.
func (f *jobFlag) String() string { return "" }

// Get implements cli.Value.
func (f *jobFlag) Get() any { return nil }

// userFlag appends to the plan's uprobes, in the order of the command line.
type userFlag struct {
	to      *[]run.UserPoint
	returns bool
}

// Set implements cli.Value.
func (f *userFlag) Set(text string) error {
	p, err := run.ParseUserPoint(text, f.returns)
	if err == nil {
		*f.to = append(*f.to, p)
	}
	return err
}

// String implements cli.Value.
func (f *userFlag) String() string { return "" }

// Get implements cli.Value.
func (f *userFlag) Get() any { return nil }

func timeoutFlag(to *time.Duration) cli.Flag {
	return &cli.DurationFlag{Name: "timeout", Destination: to, HideDefault: true,
		Usage: "stop a call after this much real `TIME`, as in 10s (not by default: where it strikes depends on the host)"}
}

func notNegative(timeout time.Duration) error {
	if timeout < 0 {
		return usagef("--timeout %s: a time cannot be negative", timeout)
	}
	return nil
}

// run checks the plan, and has it done.
func (p *plan) run(t *term, c *cli.Command) error {
	if err := p.ofProgram(c); err != nil {
		return err
	}
	if p.wantsProgram() {
		return p.runProgram(t, c)
	}
	if err := p.ofKernel(c); err != nil {
		return err
	}
	if err := p.check(c); err != nil {
		return err
	}
	img, err := openImage(t, c, operand(c, 0))
	if err != nil {
		return err
	}
	if p.Events, err = debuginfoOf(c, img).All(p.Events); err != nil {
		return sourceError(err)
	}
	if core := img.Core(); core != nil && len(p.Tasks) == 0 && c.IsSet("cpus") && p.CPUs != len(core.CPUs()) {
		return usagef("--cpus %s: the dump has %s", strconv.Itoa(p.CPUs), report.Counted(len(core.CPUs()), "CPU"))
	}
	if p.Stdin, err = programInput(p.stdin); err != nil {
		return err
	}
	p.warn(t, img)
	return p.printed(t, run.NewText(t.out, p.text(t)), func(to run.Sink) error { return p.Kernel.Run(img, to) })
}

// check looks whether the flags go with each other.
func (p *plan) check(c *cli.Command) error {
	if err := atMost(c, 1); err != nil {
		return err
	}
	if len(p.Probes)+len(p.Watches)+len(p.Events)+len(p.tracefs)+len(p.Jobs)+len(p.Tasks) == 0 && !p.Uprobes.Any() {
		return usagef("nothing to probe and nothing to call: give --kprobe SYM or --call 'name(arg, ...)'; try %s --help", c.FullName())
	}
	if p.CPUs < 1 || p.CPUs > bounded.CPUs {
		return usagef("--cpus %s: there can be 1 to %d CPUs", strconv.Itoa(p.CPUs), bounded.CPUs)
	}
	if c.IsSet("slice") && p.Slice == 0 {
		return usagef("--slice 0: want 1 instruction or more")
	}
	if err := notNegative(p.Timeout); err != nil {
		return err
	}
	if slices.ContainsFunc(p.Events, func(e string) bool { return strings.TrimSpace(e) == "" }) {
		return usagef("-e needs a definition, such as 'p:name vfs_read'")
	}
	if p.Registers && len(p.Watches) == 0 {
		return usagef("--registers goes with --watch")
	}
	if p.steps && p.json {
		return usagef("--steps and --json exclude each other: --json has the steps already")
	}
	if err := errors.Join(p.programs(c), p.traceFiles()); err != nil {
		return err
	}
	for _, s := range p.Sysctls {
		if err := run.CheckSysctl(s); err != nil {
			return usagef("--sysctl %w", err)
		}
	}
	return nil
}

// traceFiles checks what --tracefs and --trace-output say.
func (p *plan) traceFiles() error {
	writes, err := tracefsWrites(p.tracefs)
	if err != nil {
		return err
	}
	to := &p.Tracefs
	if p.Uprobes.Any() && len(p.Events) == 0 {
		to = &p.Uprobes.Tracefs
	}
	*to = writes
	if p.traceOutput == "" {
		return nil
	}
	if len(p.Events)+len(p.tracefs) == 0 {
		return usagef("--trace-output goes with -e or --tracefs")
	}
	if err := boot.CheckOutput(p.traceOutput); err != nil {
		return &failure{exitImage, err}
	}
	return nil
}

// tracefsWrites reads the values of --tracefs.
func tracefsWrites(list []string) ([]boot.TraceWrite, error) {
	writes, err := run.ParseTraceWrites(list)
	if err != nil {
		err = usagef("--tracefs %w", err)
	}
	return writes, err
}

// warn names the probes that the kernel accepts and that then do harm.
func (p *plan) warn(t *term, img *kimage.Image) {
	var list []string
	for _, probe := range p.Probes {
		list = append(list, probe.String())
	}
	for _, h := range report.ProbeHazards(img, append(list, p.Events...)) {
		if h.Effect.Harms() {
			fmt.Fprintf(t.err, "%s %s: %s (%s): %s\n", t.errStyle.Red("warning:"), h.Probe, h.ID, h.Effect, h.Says)
		}
	}
}
