package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

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
		Flags: slices.Concat(r.beginning(), []cli.Flag{
			&cli.StringFlag{Name: "format", Aliases: []string{"f"}, Value: "text", Usage: "the output's `FORMAT`: text or json"},
			&cli.BoolFlag{Name: "list", Aliases: []string{"l"}, Usage: "list the probes that the argument, a pattern, matches"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "with -l, the parameters, too"},
			scriptOutputFlag(),
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "do not say how many probes are attached"},
			&cli.BoolFlag{Name: "no-warnings", Usage: "do not warn of what looks wrong in the script"},
			&cli.BoolFlag{Name: "dry-run", Usage: "check the script and its probes, and run nothing but BEGIN"},
			&cli.StringFlag{Name: "language", Destination: &r.o.Language, Validator: script.BpftraceLanguage, Usage: "read the script as this `VERSION` of bpftrace does: 0.23 or 0.27 (default: 0.23, or 0.27 if only that reads it)"},
			&cli.BoolFlag{Name: "unsafe", Destination: &r.o.Unsafe, Usage: "allow what only --unsafe allows"},
		}, r.end(t, bpftraceTool)),
		Action: func(_ context.Context, c *cli.Command) error { return t.differences(r.run(t, c)) },
	}
}

func (r *bpftraceRun) run(t *term, c *cli.Command) (ferr error) {
	if done, err := t.asTool(c, bpftraceTool); done || err != nil {
		return err
	}
	switch f := c.String("format"); f {
	case "text":
	case "json":
		r.o.JSON = true
	default:
		return usagef("-f %s: the formats are text and json", f)
	}
	listed := c.Bool("list")
	if listed && c.Args().Len() > 1 {
		return usagef("-l takes one pattern; try %s --help", c.FullName())
	}
	name, text, args, err := r.source(c, listed || c.String("script") != "")
	if err != nil {
		return err
	}
	img, err := openReleased(t, c)
	if err != nil {
		return err
	}
	r.o.Options, r.o.NoWarnings, r.o.Env = r.options(c, name, args), c.Bool("no-warnings"), os.Environ()
	if listed {
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
	if !c.Bool("quiet") {
		fmt.Fprint(t.Err, said.Count)
	}
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
