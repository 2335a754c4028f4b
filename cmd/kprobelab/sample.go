package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/internal/cmdline"
	"kprobelab/profile"
)

// sampleSpec describes one subcommand: its name, its flags and their defaults.
type sampleSpec struct {
	name, usage string
	// kernel is the default profile, "" the guest kernel's.
	kernel string
	cpus   int
	// symbol is the name of the flag for the probed function, "" for none, and
	// maxActive the default pool, 0 where there is none.
	symbol    string
	maxActive int
	// tasks and calls are the defaults.
	tasks, calls int
	// seed is one whose run is like the published one.
	seed int64
}

var sampleSpecs = []sampleSpec{
	{
		name: "kprobe", usage: "kprobe_example: a kprobe on the function that makes tasks",
		cpus: 1, symbol: "symbol", tasks: 1, calls: 2,
	},
	{
		name: "kretprobe", usage: "kretprobe_example: what the function returned, and how long it took",
		cpus: 1, symbol: "func", maxActive: 20, tasks: 1, calls: 2,
	},
	{
		name: "jprobe", usage: "jprobe_example (to 4.14): the function's arguments",
		kernel: "4.4", cpus: 1, tasks: 1, calls: 2,
	},
}

var articleSpecs = []sampleSpec{
	{
		name: "kprobe", usage: "who calls schedule(), and how often",
		kernel: "2.6.18", cpus: 2, seed: 1, tasks: 4, calls: 3,
	},
	{
		name: "jprobe", usage: "sys_open's arguments",
		kernel: "2.6.18", cpus: 2, tasks: 1, calls: 8,
	},
	{
		name: "kretprobe", usage: "sys_open's negative results, with a pool of one",
		kernel: "2.6.18", cpus: 2, seed: 1, maxActive: 1, tasks: 8, calls: 4,
	},
}

func sampleCommand(t *term) *cli.Command {
	group := func(name, usage, page string, specs []sampleSpec, prefix string, more ...*cli.Command) *cli.Command {
		c := &cli.Command{Name: name, Usage: usage, Description: described(page), Action: cmdline.OnlyCommands}
		for _, s := range specs {
			c.Commands = append(c.Commands, s.command(t, prefix+s.name))
		}
		c.Commands = append(c.Commands, more...)
		return c
	}
	article := group("article", "the three modules of the article of 2007, on Linux 2.6.18",
		"sample article", articleSpecs, "article ")
	return group("sample", "run the kernel's sample modules, with their output",
		"sample", sampleSpecs, "", article)
}

// sampleRun holds the options of a sample's command line.
type sampleRun struct {
	name         string
	symbol       string
	pool         bool // whether there is one, of maxActive instances
	maxActive    int
	cpus         int
	tasks, calls int
	seed         int64
	json         bool
}

func (s sampleSpec) command(t *term, name string) *cli.Command {
	r := &sampleRun{name: name, pool: s.maxActive != 0}
	flags := []cli.Flag{
		rulesOnly(),
		&cli.StringFlag{Name: "profile", Value: s.kernel, Usage: "behave and print like this `PROFILE`: " + strings.Join(profile.Names(), ", ")},
		&cli.IntFlag{Name: "cpus", Value: s.cpus, Destination: &r.cpus, Usage: "number of `CPUS`"},
		&cli.IntFlag{Name: "tasks", Value: s.tasks, Destination: &r.tasks, Usage: "number of `TASKS`"},
		&cli.IntFlag{Name: "calls", Value: s.calls, Destination: &r.calls, Usage: "number of `CALLS` that each makes"},
		&cli.Int64Flag{Name: "seed", Value: s.seed, Destination: &r.seed, Usage: "`SEED` of what is left to chance"},
		&cli.BoolFlag{Name: "json", Destination: &r.json, Usage: "one JSON object a line"},
	}
	if s.symbol != "" {
		flags = append([]cli.Flag{&cli.StringFlag{Name: s.symbol, Destination: &r.symbol,
			Usage: "probe this `FUNCTION` instead; the module's own parameter"}}, flags...)
	}
	if s.maxActive != 0 {
		flags = slices.Insert(flags, 1, cli.Flag(&cli.IntFlag{Name: "maxactive", Value: s.maxActive,
			Destination: &r.maxActive, Usage: "number of `INSTANCES` in the pool"}))
	}
	return &cli.Command{
		Name: s.name, Usage: s.usage, Flags: append(flags, engineFlag()),
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
	numbers := []number{{"cpus", r.cpus, bounded.CPUs}, {"tasks", r.tasks, bounded.SampleTasks}, {"calls", r.calls, bounded.SampleCalls}}
	if r.pool {
		numbers = append(numbers, number{"maxactive", r.maxActive, bounded.SampleActive})
	}
	for _, n := range numbers {
		if n.has < 1 || n.has > n.max {
			return usagef("--%s %s: it can be 1 to %d", n.flag, strconv.Itoa(n.has), n.max)
		}
	}
	return nil
}

func (r *sampleRun) run(t *term, c *cli.Command) error {
	if err := atMost(c, 0); err != nil {
		return err
	}
	if err := r.check(); err != nil {
		return err
	}
	img, err := openImage(t, c, "")
	if err != nil {
		return err
	}
	return r.execute(t, img)
}
