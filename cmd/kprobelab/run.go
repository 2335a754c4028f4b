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

const runHelp = `Plants the probes, makes the calls in order, and takes the probes away. Every hit is
printed as the kernel's own sample modules print it (samples/kprobes), then every call
with what it returned and the buffers it filled, then every probe's counters.

A call is name(arg, ...), where an argument is an integer (42, -1, 0x2a, 'a'), a "string",
buf[N] (a buffer of N zero bytes, printed after the call), {01 ff} (a buffer with these
bytes), &symbol+off or constants of system calls (O_RDWR|O_CREAT). Where the image has BTF
the arguments are checked by it. On the dump of a booted kernel a name that is no function's
is a system call's, openat(AT_FDCWD, "/etc/hostname", 0): it is made by the task that the dump stopped in,
through the kernel's own entry, with its buffers in user memory. sys:mount(…) is one although
there is a function of the name, too.

With --json every line is an object with an "event": planted, refused, pre, post, return,
watch, step, log, call, failed, unregistered, counters. Probes have "kind" and "probe", hits
"addr", "cpu", "task", "time_ns" and "regs", calls "call", "value", "result" and "buffers".
Addresses and registers are strings.

--watch sets a watchpoint: LEN bytes (1, 2, 4 or 8; 4) whose reads, writes or both (rw) are printed
as perf script prints them, with what they held before and after, or an instruction to be executed (x).
The ip of an access is the next instruction's (docs/watch.md). With --json the event is watch.
With --program, and with uprobes of a program, a symbol is the program's. There can be as many as one likes, anywhere. With --registers they take the debug registers: a fifth is
refused (ENOSPC), and so is an unaligned address, r alone, code on the kprobes blacklist (EINVAL).

With -e events are defined in the language of kprobe_events and enabled, and at the end
the file trace is printed as the kernel prints it (with --json, a line an object). An event
may be said in the words of the source, too, as for kprobelab probe -D: 'vfs_read count'. It needs
debugging information (DWARF) in the image, its modules or --debuginfo FILE; of a function's
parameters the image's BTF knows as much.

--tracefs writes to the files of tracing (docs/tracing.md) once the events are defined, before
they are enabled: trace_options=stacktrace, 'events/kprobes/NAME/filter=count > 10',
events/kprobes/NAME/trigger=stacktrace:3.

--as PID or --as NAME makes the calls as another task of the booted kernel (kprobelab info --tasks
lists them), on its stack, with its memory and files: it is woken, and its way out of the
scheduler is followed. A task of the kernel's own can call functions, not make system calls.

With --task several sequences of calls run at once, interleaved on the CPUs by a
scheduler that repeats: the same --seed is the same run. Calls of a few instructions overlap only
where --slice lets it switch that soon.

On the dump of a booted kernel (kprobelab boot) --exec runs a program of its files, from its
execve to its exit, with what it prints and its exit code; calls and programs come in the
order of the command line. With --json there are the events output (of "kind" stdout or
stderr) and exited.

Once the probes are planted, the kernel's jump optimizer is let run until it has nothing
left to do: a probe that allows it (one without a post handler, --no-post) is then a jump to
its detour buffer, not an int3. Such a probe cannot send the CPU elsewhere: the ip that its
handler sets is ignored, and so is what it returns. A line says which these are. With
--no-settle it waits in the optimizer's queue, until the optimizer's own timer lets it run: five jiffies of
virtual time after the probe was planted, between two calls or when the scheduler changes tasks.

A probe that the kernel accepts and that then does harm (kprobelab hazards lists what can) is
planted as the kernel would, with a warning on standard error.

`

const runUserHelp = `With --uprobe, --uretprobe, a definition of -e with FILE:OFFSET or in the words of the source, or --program, IMAGE is a program,
and what follows it its arguments (after -- where they begin with a dash). It runs without a kernel,
in a sandbox (docs/uprobes.md): it reads the file of --stdin and those of --file, and writes to
standard output and error; its interpreter and libraries are such files, too. The hits are printed at the
end, as the kernel prints the file trace. --profile says which kernel's uprobes they are.
Definitions of dynamic_events that begin with f, t, e or s are a booted kernel's own, too, and need its dump.
With --exec or --call, IMAGE is the dump of a booted kernel, FILE one of its files, and the definitions go to that
kernel's own uprobe_events: its own code plants the probes in its processes, and its own file trace is printed.

`

func runCommand(t *term) *cli.Command {
	p := &plan{}
	return &cli.Command{
		Name:      "run",
		Usage:     "plant kprobes and kretprobes, call kernel functions, watch the handlers run",
		ArgsUsage: "[IMAGE | PROGRAM [ARGS]]",
		Description: runHelp + runUserHelp + imageHelp + "\n\n" + examples(
			"kprobelab run --kprobe vfs_read --kretprobe vfs_read \\",
			"   --call 'sys_open(\"/etc/hostname\", 0, 0)' --call 'sys_read(3, buf[16], 16)'",
			"kprobelab run /boot/vmlinuz --kprobe snprintf \\",
			"   --call 'snprintf(buf[64], 64, \"%s has %d things\", \"abc\", 42)'",
			"kprobelab run --steps --kprobe gcd+0x5 --call 'gcd(12, 18)'",
			"kprobelab run --steps --no-post --kprobe gcd+0x5 --call 'gcd(12, 18)'",
			"kprobelab run --module ./my.ko --kretprobe my_func:4 --call 'my_func(1)'",
			"kprobelab run -e 'p:in snprintf size=%si fmt=+0(%dx):string' -e 'r:out snprintf n=$retval:s32' \\",
			"   --call 'snprintf(buf[64], 64, \"%d things\", 42)'",
			"kprobelab run --cpus 2 --seed 7 --kprobe spin --task 'spin(10)' --task 'spin(20)'",
			"kprobelab run --cpus 2 --slice 1 --kretprobe gcd --task 'gcd(12, 18)' --task 'gcd(9, 6)'",
			"kprobelab run kernel.core --kretprobe vfs_read --exec '/bin/busybox cat /etc/hostname'",
			"kprobelab run --uprobe ./prog:main+4 --uretprobe ./prog:parse ./prog FILE --file FILE",
			"kprobelab run --uprobe ./prog:parse --uprobe-pid 101 --stats ./prog",
			"kprobelab run -e 'p:uprobes/in /bin/prog:0x1136 n=%di:s32 name=+0(%si):string' /bin/prog",
			"kprobelab run kernel.core --uprobe /bin/prog:main --exec '/bin/prog ARGS'",
			"kprobelab run --watch last_pid:4:rw --call 'sys_fork()'",
			"kprobelab run --registers --watch last_pid:4:w --watch kernel_clone:x --call 'sys_fork()'",
			"kprobelab run --json --kprobe gcd --call 'gcd(12, 18)' | jq 'select(.event == \"pre\")'",
		) + "\n" + exitHelp + "\n" + exitOfExec,
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
