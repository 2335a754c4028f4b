package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab"
	"kprobelab/internal/bounded"
	"kprobelab/internal/cmdline"
	"kprobelab/internal/sample/module"
	"kprobelab/profile"
	"kprobelab/run"
)

func sampleCommand(t *term) *cli.Command {
	group := func(name, usage, page string, list []module.Listed, prefix string, more ...*cli.Command) *cli.Command {
		c := &cli.Command{Name: name, Usage: usage, Description: described(page), Action: cmdline.OnlyCommands}
		for _, s := range list {
			r := &sampleRun{Listed: s, pool: s.Options.MaxActive != 0}
			c.Commands = append(c.Commands, r.command(t, prefix+s.Name))
		}
		c.Commands = append(c.Commands, more...)
		return c
	}
	article := group("article", "the three modules of the article of 2007, on Linux 2.6.18",
		"sample article", module.Articles(), "article ")
	return group("sample", "run the kernel's sample modules, with their output",
		"sample", module.Samples(), "", article)
}

// sampleRun holds the options of a sample's command line, which begin as the sample's own.
type sampleRun struct {
	module.Listed
	pool bool // whether there is one, of MaxActive instances
	json bool
}

func (r *sampleRun) command(t *term, name string) *cli.Command {
	o := &r.Options
	flags := []cli.Flag{
		rulesOnly(),
		&cli.StringFlag{Name: "profile", Value: r.Profile, Usage: "behave and print like this `PROFILE`: " + strings.Join(profile.Names(), ", ")},
		&cli.IntFlag{Name: "cpus", Value: r.CPUs, Destination: &r.CPUs, Usage: "number of `CPUS`"},
		&cli.IntFlag{Name: "tasks", Value: o.Tasks, Destination: &o.Tasks, Usage: "number of `TASKS`"},
		&cli.IntFlag{Name: "calls", Value: o.Calls, Destination: &o.Calls, Usage: "number of `CALLS` that each makes"},
		&cli.Int64Flag{Name: "seed", Value: o.Seed, Destination: &o.Seed, Usage: "`SEED` of what is left to chance"},
		&cli.BoolFlag{Name: "json", Destination: &r.json, Usage: "one JSON object a line"},
	}
	if r.Parameter != "" {
		flags = append([]cli.Flag{&cli.StringFlag{Name: r.Parameter, Destination: &o.Symbol,
			Usage: "probe this `FUNCTION` instead; the module's own parameter"}}, flags...)
	}
	if r.pool {
		flags = slices.Insert(flags, 1, cli.Flag(&cli.IntFlag{Name: "maxactive", Value: o.MaxActive,
			Destination: &o.MaxActive, Usage: "number of `INSTANCES` in the pool"}))
	}
	return &cli.Command{
		Name: r.Name, Usage: r.About, Flags: append(flags, engineFlag()),
		Description: described("sample " + name),
		Action:      func(_ context.Context, c *cli.Command) error { return r.run(t, c) },
	}
}

// check finds numbers that are out of range.
func (r *sampleRun) check() error {
	type number struct {
		flag     string
		has, max int
	}
	numbers := []number{{"cpus", r.CPUs, bounded.CPUs}, {"tasks", r.Options.Tasks, bounded.SampleTasks}, {"calls", r.Options.Calls, bounded.SampleCalls}}
	if r.pool {
		numbers = append(numbers, number{"maxactive", r.Options.MaxActive, bounded.SampleActive})
	}
	for _, n := range numbers {
		if n.has < 1 || n.has > n.max {
			return usagef("--%s %s: it can be 1 to %d", n.flag, strconv.Itoa(n.has), n.max)
		}
	}
	return nil
}

// sampleBudget is in instructions: all of the most tasks' most calls fit.
const sampleBudget = 1_000_000_000

func (r *sampleRun) run(t *term, c *cli.Command) (err error) {
	if err := cmp.Or(atMost(c, 0), r.check()); err != nil {
		return err
	}
	img, err := openImage(t, c, "")
	if err != nil {
		return err
	}
	l, err := kprobelab.New(img, &kprobelab.Options{CPUs: r.CPUs, Seed: r.Options.Seed, Budget: sampleBudget})
	if err != nil {
		return run.MachineError(img, err)
	}
	defer l.Close()
	w := bufio.NewWriter(t.Out)
	say := func(e module.Event) {
		switch {
		case e.Line == "":
		case e.At != nil:
			fmt.Fprintln(w, t.OutStyle.Cyan(e.Line))
		default:
			fmt.Fprintln(w, e.Line)
		}
	}
	if r.json {
		o := run.NewJSON(w)
		defer func() { err = errors.Join(err, o.Flush()) }()
		say = func(e module.Event) { o.Write(run.OfSample(e)) }
	}
	if err = r.Run(l, &r.Options, say); err != nil {
		err = fail(exitRefused, run.OneLine(err))
	}
	return errors.Join(err, w.Flush())
}
