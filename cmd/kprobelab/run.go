package main

import (
	"context"
	"slices"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/cmdline"
	"kprobelab/run"
)

func runCommand(t *term) *cli.Command {
	p := &kernelDoor{}
	return &cli.Command{
		Name:        "run",
		Usage:       "plant kprobes and kretprobes, call kernel functions, watch the handlers run",
		ArgsUsage:   "[IMAGE]",
		Description: described("run"),
		Flags: slices.Concat(p.probes(), []cli.Flag{
			&cli.GenericFlag{Name: "call", Value: cmdline.Each(p.call), Usage: "make this `CALL` (repeatable)"},
			&cli.StringFlag{Name: "as", Destination: &p.As, Usage: "on a booted kernel, make the calls as this task: its `PID` or its name"},
			&cli.StringSliceFlag{Name: "task", Destination: &p.Tasks,
				Usage: "add a task that makes these `CALLS`, 'a(); b()' (repeatable)"},
			&cli.IntFlag{Name: "cpus", Destination: &p.CPUs, DefaultText: "1", Usage: "number of `CPUS`"},
		}, p.machine(), p.shown.flags(t), []cli.Flag{decoderFlag("x86asm")}, imageFlags()),
		Action: upTo(1, func(_ context.Context, c *cli.Command) error { return t.differences(p.onImage(t, c)) }),
	}
}

// call appends a call to the plan's jobs.
func (p *kernelDoor) call(text string) error {
	p.Jobs = append(p.Jobs, run.Job{Text: text})
	return nil
}

// onImage checks the plan, opens the image, and has the plan done.
func (p *kernelDoor) onImage(t *term, c *cli.Command) error {
	if len(p.Probes)+len(p.Watches)+len(p.Events)+len(p.tracefs)+len(p.Jobs)+len(p.Tasks) == 0 {
		return usagef("nothing to probe and nothing to call: give --kprobe SYM or --call 'name(arg, ...)'; try %s --help", c.FullName())
	}
	switch {
	case c.IsSet("cpus") && p.CPUs == 0:
		return (&run.Kernel{CPUs: -1}).Check()
	case c.IsSet("as") && p.As == "":
		return usagef("--as: want a task's process number or its name")
	case c.IsSet("as") && len(p.Jobs) == 0:
		return usagef("--as goes with --call")
	}
	if err := p.check(c); err != nil {
		return err
	}
	return p.do(t, c, operand(c, 0), &run.TextOptions{})
}
