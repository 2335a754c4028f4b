package main

import (
	"context"
	"errors"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bench"
	"kprobelab/internal/callsyntax"
	"kprobelab/internal/cmdline"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
)

// benchRun holds the options of a bench command line.
type benchRun struct {
	o bench.Options
	benchFiles
}

func benchCommand(t *term) *cli.Command {
	r := &benchRun{}
	return &cli.Command{
		Name:        "bench",
		Usage:       "measure what a hit costs on each path, beside its floor and the documentation's figure",
		Description: described("bench"),
		Flags: append([]cli.Flag{
			&cli.StringSliceFlag{Name: "path", Usage: "measure this `PATH` (repeatable, or with commas; default: all)"},
			&cli.IntFlag{Name: "rounds", Value: 101, Usage: "number of `ROUNDS`, each of all paths"},
			&cli.IntFlag{Name: "hits", Value: 1000, Usage: "number of `HITS` in a round of a path"},
			&cli.IntSliceFlag{Name: "others", Usage: "with this `NUMBER` of other probes planted (repeatable: one line for each)"},
			&cli.StringFlag{Name: "programs", Usage: "measure probes on a program, on the booted kernel of `DUMP` (21 rounds)"},
			&cli.StringFlag{Name: "hardware", Value: "x86-64", Usage: "model this `PROCESSOR`: " + strings.Join(bench.HardwareNames(), ", ") + ", or a JSON file"},
			&cli.StringFlag{Name: "plot", Destination: &r.Plot, Usage: "draw it, too, into this `FILE.svg` or .png"},
			&cli.BoolFlag{Name: "json", Destination: &r.JSON, Usage: "one JSON object: paths, floor, and how it was measured"},
			&cli.BoolFlag{Name: "csv", Destination: &r.CSV, Usage: "a header, and a line for each path"},
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
	if err := errors.Join(atMost(c, 0), cmdline.OneOf(c, "json", "csv")); err != nil {
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
	if r.Plot != "" && !bench.CanPlot(r.Plot) {
		return usagef("--plot %s: the file's name has to end in .svg or .png", r.Plot)
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
	switch r.o.Hardware, err = bench.FindHardware(c.String("hardware")); {
	case errors.Is(err, bench.ErrNoHardware):
		return usagef("--hardware: %w", err)
	case err != nil:
		return fail(exitImage, err)
	}
	if r.report != "" {
		rep, err := r.read()
		if err != nil {
			return err
		}
		return r.Write(t.Out, rep)
	}
	if c.IsSet("programs") {
		return r.programs(t, c)
	}
	if r.o.Target, err = benchTarget(t, c); err != nil {
		return err
	}
	r.o.Progress = t.Progress
	return r.execute(t)
}

// targetFlags say what to measure in place of the guest kernel's functions.
func targetFlags() []cli.Flag {
	return append([]cli.Flag{
		&cli.StringFlag{Name: "symbol", Usage: "measure hits at `SYM[+OFF]` or 0xADDR"},
		&cli.StringFlag{Name: "image", Usage: "of this kernel `IMAGE`: a vmlinux, a vmlinuz, a booted kernel's dump (default: the guest kernel)"},
		&cli.StringFlag{Name: "call", Usage: "made by this `CALL`, as run has it (in the guest kernel the default is SYM(0, 5))"},
	}, imageFlags()...)
}

// benchTarget returns the place that --symbol names. It returns nil without --symbol:
// bench then measures the guest kernel's functions.
func benchTarget(t *term, c *cli.Command) (*bench.Target, error) {
	if !c.IsSet("symbol") {
		for _, f := range targetFlags() {
			if name := f.Names()[0]; name != "engine" && c.IsSet(name) {
				return nil, usagef("--%s: which place is to be measured? give --symbol SYM[+OFF], too", name)
			}
		}
		return nil, nil
	}
	probe, err := callsyntax.ParseKprobe(c.String("symbol"))
	if err != nil {
		return nil, usagef("--symbol: %w", err)
	}
	image, err := kernelOf(c, "image")
	if err != nil {
		return nil, err
	}
	call := c.String("call")
	if call == "" && image != "" && image != "-" {
		return nil, usagef("--image %s: no arguments fit every function: give a call that comes to %s, --call 'name(arg, ...)'", image, probe)
	}
	if call != "" {
		if _, err := callsyntax.ParseCall(call); err != nil {
			return nil, usagef("--call: %w", err)
		}
	}
	return &bench.Target{
		Open:  func(modules ...string) (*kimage.Image, error) { return openImage(t, c, image, modules...) },
		Place: probepoint.Request{Symbol: probe.Symbol, Addr: probe.Addr, Offset: probe.Offset},
		Call:  call,
	}, nil
}
