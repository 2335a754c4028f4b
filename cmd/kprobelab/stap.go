package main

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/cmdline"
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
		Flags: slices.Concat(r.beginning(), []cli.Flag{
			&cli.IntFlag{Name: "pass", Aliases: []string{"p"}, Value: 5, Usage: "stop after `PASS` 1 (print what was read) or 2 (print probes, functions, types)"},
			&cli.StringFlag{Name: "list", Aliases: []string{"L"}, Usage: "list the probes of `POINT` and their variables"},
			&cli.StringFlag{Name: "names", Aliases: []string{"l"}, Usage: "list the probes of `POINT`"},
			scriptOutputFlag(),
			&cli.BoolFlag{Name: "guru", Aliases: []string{"g"}, Destination: &r.o.Guru, Usage: "allow what only -g allows: writing variables and memory, probes at an address, @kderef, @kregister, @const"},
			&cli.StringSliceFlag{Name: "define", Aliases: []string{"D"}, Usage: "set a limit, `NAME=VALUE`: " + strings.Join(script.StapLimits, ", ") + " (repeatable)"},
			&cli.StringSliceFlag{Name: "global", Aliases: []string{"G"}, Usage: "give a global variable another beginning, `NAME=VALUE` (repeatable)"},
		}, r.end(t, stapTool, "t")),
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
	listed := c.IsSet("list") || c.IsSet("names")
	name, text, args, err := r.source(c, listed || c.IsSet("script"))
	if err != nil {
		return err
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
	img, err := openReleased(t, c)
	if err != nil {
		return err
	}
	printed := ""
	switch {
	case listed:
		printed, err = script.StapList(img, c.String("list")+c.String("names"), c.IsSet("list"), &r.o)
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
	for _, d := range c.StringSlice("define") {
		if err := r.o.SetLimit(d); err != nil {
			return usagef("-D %w", err)
		}
	}
	for _, g := range c.StringSlice("global") {
		if err := r.o.SetGlobal(g); err != nil {
			return usagef("-G %w", err)
		}
	}
	return nil
}
