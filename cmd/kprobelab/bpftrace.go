package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/cmdline"
	"kprobelab/run"
	"kprobelab/script"
)

// exitUnattached is bpftrace's code where the kernel refuses a probe.
const exitUnattached = 255

// bpftraceRun holds the options of a bpftrace command line.
type bpftraceRun struct {
	scriptRun
	o script.BpftraceOptions
}

func bpftraceCommand(t *term) *cli.Command {
	r := &bpftraceRun{}
	return &cli.Command{
		Name:                   "bpftrace",
		Usage:                  "run a bpftrace script on an image or a booted kernel's dump",
		ArgsUsage:              "SCRIPT.bt|-|-e SCRIPT [ARGS]",
		Description:            described("bpftrace"),
		UseShortOptionHandling: true,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "script", Aliases: []string{"e"}, Usage: "the `SCRIPT` itself, not a file's name"},
			&cli.StringFlag{Name: "release", Aliases: []string{"r"}, Usage: "run on this `IMAGE` or dump (default: the guest kernel)"},
			&cli.StringFlag{Name: "command", Aliases: []string{"c"}, Destination: &r.plan.Command, Usage: "on a booted kernel, run the program `'PROGRAM ARGS'` and end when it ends"},
			&cli.StringSliceFlag{Name: "call", Destination: &r.plan.Calls, Usage: "make this `CALL`, as in kprobelab run (repeatable)"},
			&cli.StringFlag{Name: "format", Aliases: []string{"f"}, Value: "text", Usage: "the output's `FORMAT`: text or json"},
			&cli.BoolFlag{Name: "list", Aliases: []string{"l"}, Usage: "list the probes that the argument, a pattern, matches"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "with -l, the parameters, too"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, TakesFile: true, Usage: "write the script's output to this `FILE`"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "do not say how many probes are attached"},
			&cli.BoolFlag{Name: "no-warnings", Usage: "do not warn of what looks wrong in the script"},
			&cli.BoolFlag{Name: "dry-run", Usage: "check the script and its probes, and run nothing but BEGIN"},
			&cli.BoolFlag{Name: "unsafe", Destination: &r.o.Unsafe, Usage: "allow what only --unsafe allows"},
			&cli.BoolFlag{Name: "stats", Destination: &r.stats, Usage: "print, on standard error, how each probe was planted, its hits, misses and statements"},
			&cli.Uint64Flag{Name: "budget", Value: run.ProgramBudget, Destination: &r.plan.Budget, Usage: "stop a call or the program after this many guest `INSTRUCTIONS`"},
			&cli.DurationFlag{Name: "for", Value: time.Minute, Destination: &r.plan.Wait, Usage: "without -c and --call, let this much virtual `TIME` pass at most"},
			decoderFlag("x86asm"), debuginfoFlag(),
			rawFlag(t),
		}, append(bpftraceTool.Flags(), imageFlags()...)...),
		Action: func(_ context.Context, c *cli.Command) error { return t.differences(r.run(t, c)) },
	}
}

func (r *bpftraceRun) run(t *term, c *cli.Command) (ferr error) {
	if done, err := t.asTool(c, bpftraceTool); done || err != nil {
		return err
	}
	args := c.Args().Slice()
	name, text := "", c.String("script")
	switch f := c.String("format"); f {
	case "text":
	case "json":
		r.o.JSON = true
	default:
		return usagef("-f %s: the formats are text and json", f)
	}
	switch {
	case c.Bool("list"):
		if len(args) > 1 {
			return usagef("-l takes one pattern; try %s --help", c.FullName())
		}
	case text != "":
	case len(args) == 0:
		return usagef("bpftrace takes a script: a file, - for standard input, or -e SCRIPT; try %s --help", c.FullName())
	default:
		var err error
		if name, text, args, err = readScript(args); err != nil {
			return err
		}
	}
	kernel, err := kernelOf(c, "release")
	if err != nil {
		return err
	}
	img, err := openImage(t, c, kernel)
	if err != nil {
		return err
	}
	r.o.Options, r.o.NoWarnings, r.o.Env = r.options(c, name, args), c.Bool("no-warnings"), os.Environ()
	if c.Bool("list") {
		list, warnings, err := script.BpftraceList(img, strings.Join(args, ""), c.Bool("verbose"), &r.o)
		if err != nil {
			return run.SourceError(err)
		}
		if !r.o.NoWarnings {
			fmt.Fprint(t.Err, warnings)
		}
		fmt.Fprint(t.Out, list)
		return nil
	}
	s, err := script.Bpftrace(img, text, &r.o)
	if err != nil {
		return t.unread(err)
	}
	said := s.Said()
	fmt.Fprint(t.Err, said.Warnings)
	t, closed, err := t.outputTo(c.String("output"))
	if err != nil {
		return err
	}
	defer closed(&ferr)
	if !c.Bool("quiet") {
		fmt.Fprint(t.Out, said.Attaching)
	}
	fmt.Fprint(t.Err, said.Attached)
	switch err := s.Attachable(); {
	case errors.Is(err, script.ErrUnattached):
		return fail(exitUnattached, cmdline.ErrSaid)
	case err != nil:
		return fail(exitRefused, cmdline.ErrSaid)
	}
	r.plan.AnyCode = true
	if c.Bool("dry-run") {
		dry, err := s.Dry(t.scriptOutput())
		if err != nil {
			return fail(exitRefused, err)
		}
		return r.ended(t)(run.EndScript(dry))
	}
	return r.start(t, img, s)
}
