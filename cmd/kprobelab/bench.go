package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bench"
	"kprobelab/internal/bounded"
)

const benchHelp = `Measures what a hit costs on each path that it can take, on the guest kernel inside the
program: a loop in the guest calls a function, unprobed and probed in turn, and the
difference is divided by the hits. The columns:

   ns         nanoseconds of this machine per hit: the median of the rounds
   quartiles  half of the rounds were between these
   floor      what the engine asks for the same traps, call-outs and guest instructions
              with nothing after them, measured in the same run; x is ns to that
   traps, steps, guest, go
              int3s at the probed address; second traps, after the copy; instructions
              that the guest runs more; calls out of the engine into Go
   allocs     allocations of Go's heap per hit
   doc        microseconds in the table of the kernel's documentation (kprobes.rst), on an
              x86-64 processor of 2008
   model      microseconds by --hardware: its costs times the traps, steps, detours and
              trampolines counted here

The last line says so where the figures cannot be compared with those of another run: fewer than
10 rounds, or quartiles more than a fifth of ns apart (JSON: noise). Measure then with nothing
else running.

With --symbol it measures a place of your own, in the guest kernel or in the kernel of
--image, which the call of --call comes to: on the paths that a hit there can take. The other
paths are listed with the reason. A fentry site, which most functions begin with, has the
path ftrace only, and a return probe there r-ftrace: give an offset for other paths. Every
call has to make the same number of hits, and the figures are per hit; a buffer is not reset
between calls. The floor is the guest kernel's. On the memory dump of a booted kernel the call
can be a system call, which is then made in a loop of user mode.

A handler is a function in Go that counts its hits. Each path says which kernel's rules it runs
on: boosting (b, rb) needs one without PREEMPTION, stepping by the trap flag one before 5.13.

With --programs it measures probes on a program in place of the kernel's, on the booted kernel of a
dump. All of it is that kernel's own code: a small program calls a function, with the debugger's way
of stopping there (ptrace) or with a uprobe whose instruction is stepped, emulated, or a nop that
recent kernels replace by a call. The columns besides: switches from one process to another, and
system calls that stand in for a trap. The debugger's hit is what a debugger does (wait, read and write
the registers, put the byte back, step, wait, go on); a uprobe's has its record in the trace buffer.
doc is what the documentation of the first uprobes has, of 2007, with a handler and no record.

--hardware is x86-64 or i386, the documentation's processors, or a JSON file of your own:
   {"name": "mine", "trap_us": 0.5, "step_us": 0.5, "detour_us": 0.05, "trampoline_us": 0.2}

`

// benchRun is what the command line asks for.
type benchRun struct {
	o         bench.Options
	json, csv bool
	// plot is the file to draw into, "" for none.
	plot string
	benchFiles
}

func benchCommand(t *term) *cli.Command {
	r := &benchRun{}
	return &cli.Command{
		Name:  "bench",
		Usage: "measure what a hit costs on each path, beside its floor and the documentation's figure",
		Description: benchHelp + examples(
			"kprobelab bench",
			"kprobelab bench --path k --path b --path o --rounds 50",
			"kprobelab bench --json | jq '.paths[] | {path, ns, floor_ns}'",
			"kprobelab bench --path k,o --others 1 --others 10 --others 100000",
			"kprobelab bench --plot cost.svg",
			"kprobelab bench --csv --hardware i386 > cost.csv",
			"kprobelab bench --image /boot/vmlinuz --symbol gcd+0x5 --call 'gcd(12, 18)'",
			"kprobelab bench --image /boot/vmlinuz --symbol vsnprintf --call 'snprintf(buf[64], 64, \"%d\", 42)'",
			"kprobelab bench --image 6.1.core --symbol vfs_statx+0x5 --call 'newfstatat(AT_FDCWD, \"/\", buf[256], 0)'",
			"kprobelab bench --programs 6.1.core --rounds 11",
			"kprobelab bench --against qemu.txt",
		) + againstHelp + "\nPaths:\n" + benchPaths() + "\n" + exitHelp,
		Flags: append([]cli.Flag{
			&cli.StringSliceFlag{Name: "path", Usage: "measure this `PATH` (repeatable, or with commas; default: all)"},
			&cli.IntFlag{Name: "rounds", Value: 101, Usage: "number of `ROUNDS`, each of all paths"},
			&cli.IntFlag{Name: "hits", Value: 1000, Usage: "number of `HITS` in a round of a path"},
			&cli.IntSliceFlag{Name: "others", Usage: "with this `NUMBER` of other probes planted (repeatable: one line for each)"},
			&cli.StringFlag{Name: "programs", Usage: "measure probes on a program, on the booted kernel of `DUMP` (21 rounds)"},
			&cli.StringFlag{Name: "hardware", Value: "x86-64", Usage: "model this `PROCESSOR`: " + strings.Join(bench.HardwareNames(), ", ") + ", or a JSON file"},
			&cli.StringFlag{Name: "plot", Destination: &r.plot, Usage: "draw it, too, into this `FILE.svg` or .png"},
			&cli.BoolFlag{Name: "json", Destination: &r.json, Usage: "one JSON object: paths, floor, and how it was measured"},
			&cli.BoolFlag{Name: "csv", Destination: &r.csv, Usage: "a header, and a line for each path"},
		}, append(targetFlags(), r.benchFiles.flags()...)...),
		Action: func(_ context.Context, c *cli.Command) error { return r.run(t, c) },
	}
}

func benchPaths() string {
	var b strings.Builder
	for _, p := range bench.Paths() {
		b.WriteString("   " + p.Name + strings.Repeat(" ", 10-len(p.Name)) + p.Describes + "; " + p.Profile() + "\n")
	}
	return b.String()
}

func (r *benchRun) run(t *term, c *cli.Command) error {
	if err := errors.Join(atMost(c, 0), oneOf(c, "json", "csv")); err != nil {
		return err
	}
	if err := r.open(c); err != nil {
		return err
	}
	for _, names := range c.StringSlice("path") {
		r.o.Paths = append(r.o.Paths, strings.Split(names, ",")...)
	}
	if r.o.Rounds = c.Int("rounds"); r.o.Rounds < 1 || r.o.Rounds > bench.MaxRounds {
		return usagef("--rounds %d: it can be 1 to %d", r.o.Rounds, bench.MaxRounds)
	}
	if r.o.Hits = c.Int("hits"); r.o.Hits < 1 || r.o.Hits > bench.MaxHits {
		return usagef("--hits %d: it can be 1 to %d", r.o.Hits, bench.MaxHits)
	}
	if _, ok := plotForms[filepath.Ext(r.plot)]; r.plot != "" && !ok {
		return usagef("--plot %s: the file's name has to end in .svg or .png", r.plot)
	}
	r.o.Others = c.IntSlice("others")
	for _, n := range r.o.Others {
		if n < 0 || n > bench.MaxOthers {
			return usagef("--others %d: it can be 0 to %d", n, bench.MaxOthers)
		}
	}
	if _, err := bench.Choose(r.o.Paths); err != nil {
		return usagef("--path: %w", err)
	}
	var err error
	if r.o.Hardware, err = hardware(c.String("hardware")); err != nil {
		return err
	}
	if r.report != "" {
		rep, err := r.read()
		if err != nil {
			return err
		}
		return r.show(t.out, rep)
	}
	if c.IsSet("programs") {
		return r.programs(t, c)
	}
	if r.o.Target, err = benchTarget(t, c); err != nil {
		return err
	}
	r.o.Progress = t.progress
	return r.execute(t)
}

// hardware is a processor by name, or by the file that describes it.
func hardware(name string) (bench.Hardware, error) {
	if h, ok := bench.NamedHardware(name); ok {
		return h, nil
	}
	text, err := bounded.ReadFile(name, bounded.BenchFile)
	if errors.Is(err, os.ErrNotExist) {
		return bench.Hardware{}, usagef("--hardware: there is no processor and no file %q: there are %s", name, strings.Join(bench.HardwareNames(), ", "))
	}
	if err != nil {
		return bench.Hardware{}, err
	}
	h, err := bench.ParseHardware(text)
	if err != nil {
		return h, &failure{exitImage, err}
	}
	return h, nil
}
