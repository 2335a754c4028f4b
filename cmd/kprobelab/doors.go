package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"kprobelab/boot"
	"kprobelab/internal/bounded"
	"kprobelab/internal/cmdline"
	"kprobelab/internal/outfile"
	"kprobelab/run"
	"kprobelab/watch"
)

// The commands run, exec and uprobe share one runner and one printer. kernelDoor holds the options that run and exec
// share; shown holds the options of output, which all three share.
type kernelDoor struct {
	run.Kernel
	// tracefs are the values of the flag.
	tracefs []string
	shown
}

// probes returns the flags for the probes, events and watchpoints in a kernel.
func (p *kernelDoor) probes() []cli.Flag {
	return append([]cli.Flag{
		&cli.GenericFlag{Name: "kprobe", Value: cmdline.Parsed(&p.Probes, run.Kprobe),
			Usage: "probe the instruction at `SYM[+OFF]` or 0xADDR (repeatable)"},
		&cli.GenericFlag{Name: "kretprobe", Value: cmdline.Parsed(&p.Probes, run.Kretprobe),
			Usage: "probe the return of the function at `SYM[:MAXACTIVE]` (repeatable)"},
		&cli.StringSliceFlag{Name: "event", Aliases: []string{"e"}, Destination: &p.Events,
			Usage: "define and enable a kprobe `EVENT`, as written to kprobe_events or as for probe -D; prints the trace (repeatable)"},
		&cli.StringSliceFlag{Name: "tracefs", Destination: &p.tracefs,
			Usage: "write to a file of tracing before the events of -e are enabled, as `FILE=TEXT`: trace_options=stacktrace (repeatable)"},
		&cli.BoolFlag{Name: "no-post", Destination: &p.NoPost,
			Usage: "give the kprobes no post handler (kernels without PREEMPTION boost such a probe)"},
		&cli.BoolFlag{Name: "no-settle", Destination: &p.NoSettle,
			Usage: "do not let the jump optimizer run before the calls: probes wait in its queue for its timer"},
		&cli.StringSliceFlag{Name: "sysctl", Destination: &p.Sysctls,
			Usage: "set a sysctl first, `NAME=VALUE`: debug.kprobes-optimization=0, and for exec the guest's sysctls (repeatable)"},
		&cli.StringFlag{Name: "film", Destination: &p.film, Usage: "write all states of the run to `FILE`, which the page plays: kprobelab serve"},
		&cli.BoolFlag{Name: "dmesg", Destination: &p.Dmesg, Usage: "on a booted kernel, print what each call and program made it log"},
		debuginfoFlag(),
	}, watchFlags(&p.Watches, &p.Registers)...)
}

// watchFlags are the flags of watchpoints.
func watchFlags(to *[]watch.Place, registers *bool) []cli.Flag {
	return []cli.Flag{
		&cli.GenericFlag{Name: "watch", Value: cmdline.Parsed(to, watch.Parse),
			Usage: "watch accesses to `SYM[+OFF][:LEN][:ACCESS]` or mem:ADDR[/LEN][:ACCESS]; ACCESS is r, w, rw or x (repeatable)"},
		&cli.BoolFlag{Name: "registers", Destination: registers,
			Usage: "let --watch have what the processor's four debug registers can have, refused as by the kernel's register_wide_hw_breakpoint"},
	}
}

// uprobeFlags are the flags of uprobes.
func uprobeFlags(to *[]run.UserPoint, stats *bool) []cli.Flag {
	point := func(returns bool) cmdline.Each {
		return cmdline.Parsed(to, func(text string) (run.UserPoint, error) { return run.ParseUserPoint(text, returns) })
	}
	return []cli.Flag{
		&cli.GenericFlag{Name: "uprobe", Value: point(false),
			Usage: "probe the instruction of a program or library at `FILE:SYM[+OFF]` or FILE:0xOFFSET (repeatable)"},
		&cli.GenericFlag{Name: "uretprobe", Value: point(true),
			Usage: "probe the return of the function of a program or library at `FILE:SYM` or FILE:0xOFFSET (repeatable)"},
		&cli.BoolFlag{Name: "stats", Destination: stats, Usage: "print what became of the uprobes, and of a program without a kernel its system calls"},
	}
}

// machine are the flags of a kernel's machine.
func (p *kernelDoor) machine() []cli.Flag {
	return append(machineFlags(&p.Seed, &p.Budget, &p.Timeout),
		&cli.Uint64Flag{Name: "slice", Destination: &p.Slice, HideDefault: true,
			Usage: "let the scheduler switch tasks after so many `INSTRUCTIONS`, counted one by one, as 1 (default: 1000, by blocks)"})
}

func machineFlags(seed *int64, budget *uint64, timeout *time.Duration) []cli.Flag {
	return []cli.Flag{
		&cli.Int64Flag{Name: "seed", Destination: seed, Usage: "`SEED` of the scheduler's choices; on a booted kernel, of the order of processors and of when timers fall"},
		&cli.Uint64Flag{Name: "budget", Destination: budget, DefaultText: fmt.Sprintf("%d for a call, %d for a program", run.CallBudget, run.ProgramBudget),
			Usage: "stop a call or a program after this many guest `INSTRUCTIONS`"},
		timeoutFlag(timeout),
	}
}

func timeoutFlag(to *time.Duration) cli.Flag {
	return &cli.DurationFlag{Name: "timeout", Destination: to, HideDefault: true,
		Usage: "stop a call after this much real `TIME`, as in 10s (not by default: where it strikes depends on the host)"}
}

// check looks whether the flags go with each other.
func (p *kernelDoor) check(c *cli.Command) error {
	if c.IsSet("slice") && p.Slice == 0 {
		return usagef("--slice 0: want 1 instruction or more")
	}
	var err error
	if p.Tracefs, err = run.ParseTraceWrites(p.tracefs); err != nil {
		return err
	}
	own := len(p.Points) > 0 || slices.ContainsFunc(p.Events, run.IsKernelsEvent)
	hits := len(p.Probes)+len(p.Watches) > 0 || slices.ContainsFunc(p.Events, func(e string) bool { return !run.IsKernelsEvent(e) })
	if own && !hits && (p.steps || p.perfetto != "") {
		return usagef("--steps and --perfetto show hits of our own probes, and a booted kernel's uprobes are its own: " +
			"add a --kprobe on what it does there, as uprobe_notify_resume or arch_uprobe_pre_xol, or run the program without a kernel")
	}
	p.Trace = p.trace()
	p.Debuginfo, p.Modules = c.String(debuginfoFlagName), c.StringSlice("module")
	if p.traceOutput != "" && len(p.Events)+len(p.tracefs) == 0 {
		return usagef("--trace-output goes with -e or --tracefs")
	}
	return errors.Join(p.shown.check(), p.Kernel.Check())
}

// do opens the kernel, and has the plan done.
func (p *kernelDoor) do(t *term, c *cli.Command, kernel string, text *run.TextOptions) error {
	img, err := openImage(t, c, kernel)
	if err != nil {
		return err
	}
	p.Steps, p.Records = p.inSteps(), p.perfetto != ""
	text.Tasks = len(p.Tasks) > 0
	return p.printed(t, text, func(to run.Sink) error { return p.Kernel.Run(img, to) })
}

// shown holds the flags that say in which form a command shows its events.
type shown struct {
	steps, json bool
	// perfetto is the file for a trace, film the one for a film, traceOutput the one for the text of trace; "" for none.
	perfetto, film, traceOutput string
	maxOutput                   uint64
}

func (s *shown) flags(t *term) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "trace-output", Destination: &s.traceOutput, Usage: "write the file trace to `FILE` as it is, and do not print it"},
		&cli.Uint64Flag{Name: "max-output", Value: bounded.Output, Destination: &s.maxOutput,
			Usage: "print no more hits and log lines after this many `BYTES`, and say how many are missing"},
		&cli.StringFlag{Name: "perfetto", Destination: &s.perfetto,
			Usage: "write a trace for Perfetto to `FILE` (JSON lines, if it ends in .jsonl): hits, returns, text pokes"},
		&cli.BoolFlag{Name: "steps", Destination: &s.steps, Usage: "show each hit as numbered steps, for learners"},
		&cli.BoolFlag{Name: "json", Destination: &s.json, Usage: "one JSON object a line: planted, pre, post, return, call, counters, …"},
		rawFlag(t),
	}
}

// check looks whether the flags go with each other, and whether the files can be written.
func (s *shown) check() error {
	if s.steps && s.json {
		return usagef("--steps and --json exclude each other: --json has the steps already")
	}
	if s.traceOutput == "" {
		return nil
	}
	if err := boot.CheckOutput(s.traceOutput); err != nil {
		return fail(exitImage, err)
	}
	return nil
}

// inSteps reports whether the plan has to give the steps of hits.
func (s *shown) inSteps() bool { return s.steps || s.json || s.perfetto+s.film != "" }

// trace writes the file of --trace-output; nil without it.
func (s *shown) trace() func(string) error {
	if s.traceOutput == "" {
		return nil
	}
	return func(text string) error {
		if err := outfile.Write(s.traceOutput, []byte(text)); err != nil {
			return fail(exitImage, err)
		}
		return nil
	}
}

// printing is a sink that prints.
type printing interface {
	run.Sink
	Buffered() int
	Flush() error
}

// recorder is a sink that writes a file.
type recorder interface {
	run.Sink
	Close() error
}

// recorded has a run recorded in a file, too; with an empty name it is not.
func recorded(name string, to func(io.Writer) recorder, do func(run.Sink) error) func(run.Sink) error {
	if name == "" {
		return do
	}
	return func(sink run.Sink) (err error) {
		f, err := outfile.Create(name)
		if err != nil {
			return fail(exitImage, err)
		}
		rec := to(f)
		defer func() {
			if failed := f.Done(rec.Close()); failed != nil {
				err = errors.Join(err, fail(exitImage, failed))
			}
		}()
		return do(run.Tee(rec, sink))
	}
}

// printed has a run done, and what happens printed and recorded.
func (s *shown) printed(t *term, o *run.TextOptions, do func(run.Sink) error) (err error) {
	o.Colour, o.Steps, o.Out, o.Err = bool(t.OutStyle), s.steps, t.RawOut, t.RawErr
	var out printing = run.NewText(t.Out, o)
	if s.json {
		out = run.NewJSON(t.Out)
	}
	to := run.Capped(out, s.maxOutput, func() uint64 { return uint64(out.Buffered()) + t.Written() })
	do = recorded(s.perfetto, func(to io.Writer) recorder { return run.NewPerfetto(to, strings.HasSuffix(s.perfetto, ".jsonl")) }, do)
	do = recorded(s.film, func(to io.Writer) recorder { return run.NewFilm(to) }, do)
	err = do(run.Func(func(e run.Event) error {
		run.Warn(t.Err, e, t.ErrStyle.Red("warning:"))
		return to.Put(e)
	}))
	if failed := out.Flush(); failed != nil {
		if exit := (*run.ExitError)(nil); errors.As(err, &exit) {
			err = nil // a program's exit code says nothing about the output
		}
		return errors.Join(err, failed)
	}
	return err
}

// programInput is the value of --stdin, read: most bytes of it are possible.
func programInput(file string, most int64) (b []byte, err error) {
	switch file {
	case "":
	case "-":
		if b, err = bounded.ReadAll(os.Stdin, most); err != nil {
			err = fail(exitImage, fmt.Errorf("standard input: %w", err))
		}
	default:
		b, err = bounded.ReadFile(file, most)
	}
	return b, err
}
