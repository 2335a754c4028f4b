package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/cmdline"
	"kprobelab/run"
	"kprobelab/script"
)

// stapRun holds the options of a stap command line.
type stapRun struct {
	scriptRun
	o script.StapOptions
}

func stapCommand(t *term) *cli.Command {
	r := &stapRun{}
	return &cli.Command{
		Name:        "stap",
		Usage:       "run a SystemTap script on an image or a booted kernel's dump",
		ArgsUsage:   "SCRIPT.stp|-|-e SCRIPT [ARGS]",
		Description: described("stap"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "script", Aliases: []string{"e"}, Usage: "the `SCRIPT` itself, not a file's name"},
			&cli.StringFlag{Name: "release", Aliases: []string{"r"}, Usage: "run on this `IMAGE` or dump (default: the guest kernel)"},
			&cli.StringFlag{Name: "command", Aliases: []string{"c"}, Destination: &r.plan.Command, Usage: "on a booted kernel, run the program `'PROGRAM ARGS'` and end when it ends"},
			&cli.StringSliceFlag{Name: "call", Destination: &r.plan.Calls, Usage: "make this `CALL`, as in kprobelab run (repeatable)"},
			&cli.IntFlag{Name: "pass", Aliases: []string{"p"}, Value: 5, Usage: "stop after `PASS` 1 (print what was read) or 2 (print probes, functions, types)"},
			&cli.StringFlag{Name: "list", Aliases: []string{"L"}, Usage: "list the probes of `POINT` and their variables"},
			&cli.StringFlag{Name: "names", Aliases: []string{"l"}, Usage: "list the probes of `POINT`"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, TakesFile: true, Usage: "write the script's output to this `FILE`"},
			&cli.BoolFlag{Name: "guru", Aliases: []string{"g"}, Destination: &r.o.Guru, Usage: "allow what only -g allows: writing variables and memory, probes at an address, @kderef, @kregister, @const"},
			&cli.StringSliceFlag{Name: "define", Aliases: []string{"D"}, Usage: "set a limit, `NAME=VALUE`: " + strings.Join(script.StapLimits, ", ") + " (repeatable)"},
			&cli.StringSliceFlag{Name: "global", Aliases: []string{"G"}, Usage: "give a global variable another beginning, `NAME=VALUE` (repeatable)"},
			&cli.BoolFlag{Name: "stats", Aliases: []string{"t"}, Destination: &r.stats, Usage: "print, on standard error, how each probe was planted, its hits, misses and statements"},
			&cli.Uint64Flag{Name: "budget", Value: run.ProgramBudget, Destination: &r.plan.Budget, Usage: "stop a call or the program after this many guest `INSTRUCTIONS`"},
			&cli.DurationFlag{Name: "for", Value: time.Minute, Destination: &r.plan.Wait, Usage: "without -c and --call, let this much virtual `TIME` pass at most"},
			decoderFlag("x86asm"), debuginfoFlag(),
			rawFlag(t),
		}, append(stapTool.Flags(), imageFlags()...)...),
		Action: func(_ context.Context, c *cli.Command) error { return t.differences(r.run(t, c)) },
	}
}

func (r *stapRun) run(t *term, c *cli.Command) (ferr error) {
	if done, err := t.asTool(c, stapTool); done || err != nil {
		return err
	}
	if err := cmdline.OneOf(c, "list", "names"); err != nil {
		return err
	}
	args := c.Args().Slice()
	name, text := "", c.String("script")
	listed := c.String("list") + c.String("names")
	switch {
	case c.IsSet("list") || c.IsSet("names"):
	case c.IsSet("script"):
	case len(args) == 0:
		return usagef("stap takes a script: a file, - for standard input, or -e SCRIPT; try %s --help", c.FullName())
	default:
		var err error
		if name, text, args, err = readScript(args); err != nil {
			return err
		}
	}
	pass := c.Int("pass")
	if pass != 1 && pass != 2 && pass != 5 {
		return usagef("-p %s: there are pass 1, 2 and 5: no C is made of a script here", strconv.Itoa(pass))
	}
	r.o.Options = r.options(c, name, args)
	if err := r.limits(c); err != nil {
		return err
	}
	normally := debug.SetGCPercent(collectAt)
	kernel, err := kernelOf(c, "release")
	if err != nil {
		return err
	}
	img, err := openImage(t, c, kernel)
	if err != nil {
		return err
	}
	printed := ""
	switch {
	case c.IsSet("list") || c.IsSet("names"):
		printed, err = script.StapList(img, listed, c.IsSet("list"), &r.o)
	case pass == 1:
		printed, err = script.StapTree(img, text, &r.o)
	case pass == 2:
		printed, err = script.StapTypes(img, text, &r.o)
	default:
		var s *script.Script
		if s, err = script.Stap(img, text, &r.o); err == nil {
			debug.SetGCPercent(normally)
			t, closed, err := t.outputTo(c.String("output"))
			if err != nil {
				return err
			}
			defer closed(&ferr)
			return r.start(t, img, s)
		}
	}
	if err != nil {
		return t.unread(err)
	}
	fmt.Fprint(t.Out, printed)
	return nil
}

// collectAt is GOGC while a script or debugging information is read. The live heap (image and debugging information) is
// hundreds of megabytes; the default of 100 would double it.
const collectAt = 10

// limits reads -D and -G.
func (r *stapRun) limits(c *cli.Command) error {
	r.o.Limits = map[string]uint64{}
	for _, d := range c.StringSlice("define") {
		name, value, ok := strings.Cut(d, "=")
		v, err := strconv.ParseUint(value, 0, 31)
		switch {
		case !ok || err != nil:
			return usagef("-D %q: want NAME=NUMBER", d)
		case !slices.Contains(script.StapLimits, name):
			return usagef("-D %s: there is no such limit, only %s", name, strings.Join(script.StapLimits, ", "))
		}
		r.o.Limits[name] = v
	}
	r.o.Globals = map[string]string{}
	for _, g := range c.StringSlice("global") {
		name, value, ok := strings.Cut(g, "=")
		if !ok || name == "" {
			return usagef("-G %q: want NAME=VALUE", g)
		}
		r.o.Globals[name] = value
	}
	return nil
}
