package main

import (
	"context"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/internal/cmdline"
	"kprobelab/watch"
)

// mounting holds the options of a mount command line.
type mounting struct {
	cpus    int
	seed    int64
	budget  uint64
	timeout time.Duration
	debug   bool
	dir     string
	watches []watch.Place
	// registers is whether the watchpoints take the four debug registers.
	registers bool
}

func mountCommand(t *term) *cli.Command {
	p := &mounting{}
	return &cli.Command{
		Name:        "mount",
		Usage:       "mount the tracing files (kprobe_events, trace_pipe, …) at a directory",
		ArgsUsage:   "DIR [IMAGE]",
		Description: described("mount"),
		Flags: append([]cli.Flag{
			&cli.IntFlag{Name: "cpus", Value: 2, Destination: &p.cpus, Usage: "number of `CPUS`"},
			&cli.Int64Flag{Name: "seed", Destination: &p.seed, Usage: "`SEED` of the scheduler's choices"},
			&cli.Uint64Flag{Name: "budget", Value: 100_000_000, Destination: &p.budget,
				Usage: "stop a call after this many guest `INSTRUCTIONS`"},
			timeoutFlag(&p.timeout),
			&cli.GenericFlag{Name: "watch", Value: cmdline.Parsed(&p.watches, watch.Parse),
				Usage: "print who accesses `PLACE`, as run --watch does (repeatable); no file of tracing has it"},
			&cli.BoolFlag{Name: "registers", Destination: &p.registers, Usage: "let --watch have what the processor's four debug registers can have"},
			&cli.BoolFlag{Name: "debug", Destination: &p.debug, Usage: "print every request of the file system"},
		}, imageFlags()...),
		Action: upTo(2, func(ctx context.Context, c *cli.Command) error { return p.run(ctx, t, c) }),
	}
}

func (p *mounting) run(ctx context.Context, t *term, c *cli.Command) error {
	if p.dir = operand(c, 0); p.dir == "" {
		return usagef("where to mount is missing: give an empty directory; try %s --help", c.FullName())
	}
	if p.cpus < 1 || p.cpus > bounded.CPUs {
		return usagef("--cpus %s: there can be 1 to %d CPUs", strconv.Itoa(p.cpus), bounded.CPUs)
	}
	if err := cmdline.NotNegative(p.timeout); err != nil {
		return err
	}
	if p.registers && len(p.watches) == 0 {
		return usagef("--registers goes with --watch")
	}
	// The place is one look at a folder, an image some seconds of reading.
	if err := p.checkPlace(); err != nil {
		return err
	}
	img, err := openImage(t, c, operand(c, 1))
	if err != nil {
		return err
	}
	if !c.IsSet("budget") {
		p.budget = mountBudget(img.Core() != nil, p.budget)
	}
	return p.serve(ctx, t, img)
}

// mountBudget returns the budget of one use of a file if --budget is not given.
func mountBudget(booted bool, usual uint64) uint64 {
	if booted {
		return bounded.MountBudget
	}
	return usual
}
