package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/profile"
)

const sampleHelp = `Loads one of the kernel's sample modules into the guest kernel, lets some tasks run there,
and unloads it. What is printed is what the module writes to the kernel's log (dmesg), in
the words of the release that --profile names. Addresses are the guest kernel's.

`

const sampleJSONHelp = `With --json every line is an object with an "event": planted, pre, post, fault, return,
log, times, unregistered, missed, counters, or refused. "detail" is the line of the log,
"comm" the name of the task; the rest is as in run --json.

The same --seed is the same run, to the nanosecond.

`

// sampleSpec is what a subcommand has of its own.
type sampleSpec struct {
	name, usage, help string
	examples          []string
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
		help: `The kernel's samples/kprobes/kprobe_example.c: a pre and a post handler on kernel_clone
(_do_fork to 5.9, do_fork in 2.6.18), each of which prints the address and the flags. bash
opens a file, reads it and forks, --calls times; kthreadd forks once.`,
		examples: []string{
			"kprobelab sample kprobe", "kprobelab sample kprobe --profile 4.4",
			"kprobelab sample kprobe --symbol do_sys_open --tasks 3 --cpus 2",
		},
		cpus: 1, symbol: "symbol", tasks: 1, calls: 2,
	},
	{
		name: "kretprobe", usage: "kretprobe_example: what the function returned, and how long it took",
		help: `The kernel's samples/kprobes/kretprobe_example.c: the entry handler stores the time in the
instance and leaves kernel threads out, so kthreadd's fork is not seen; the handler prints
the result and the time. 2.6.18 has no entry handlers: nobody is left out there, and there
is no time. With a small pool and many tasks, calls are missed.`,
		examples: []string{
			"kprobelab sample kretprobe", "kprobelab sample kretprobe --func vfs_read --profile 5.10",
			"kprobelab sample kretprobe --func do_sys_open --maxactive 1 --tasks 8 --cpus 2",
		},
		cpus: 1, symbol: "func", maxActive: 20, tasks: 1, calls: 2,
	},
	{
		name: "jprobe", usage: "jprobe_example (to 4.14): the function's arguments",
		help: `The kernel's samples/kprobes/jprobe_example.c: a handler with the probed function's own
signature prints its arguments. It is a function of the guest, entered on the probed one's
registers and stack. Jprobes were taken out of the kernel: of the profiles 2.6.18 and 4.4
have them, and the others refuse, as their register_jprobe did.`,
		examples: []string{"kprobelab sample jprobe", "kprobelab sample jprobe --profile 6.1"},
		kernel:   "4.4", cpus: 1, tasks: 1, calls: 2,
	},
}

var articleSpecs = []sampleSpec{
	{
		name: "kprobe", usage: "who calls schedule(), and how often",
		help: `A kprobe on schedule() prints who runs on which CPU before the function's first instruction
and after it (not after the scheduling). At the end it says how often in how much virtual
time. Each task calls schedule() --calls times and sleeps in between.`,
		examples: []string{"kprobelab sample article kprobe", "kprobelab sample article kprobe --tasks 6 --calls 10 --seed 2"},
		kernel:   "2.6.18", cpus: 2, seed: 1, tasks: 4, calls: 3,
	},
	{
		name: "jprobe", usage: "sys_open's arguments",
		help: `A jprobe on sys_open prints who opens what, while cat shows a file, and rmmod unloads the
module. 2.6.18 and 4.4 have jprobes.`,
		examples: []string{"kprobelab sample article jprobe", "kprobelab sample article jprobe --tasks 2"},
		kernel:   "2.6.18", cpus: 2, tasks: 1, calls: 8,
	},
	{
		name: "kretprobe", usage: "sys_open's negative results, with a pool of one",
		help: `A kretprobe on sys_open prints results below 0. Its pool has one instance, and many tasks
open files on two CPUs: a call that begins while another is tracked is missed, and counted.`,
		examples: []string{
			"kprobelab sample article kretprobe", "kprobelab sample article kretprobe --maxactive 8",
			"kprobelab sample article kretprobe --cpus 1 --tasks 1",
		},
		kernel: "2.6.18", cpus: 2, seed: 1, maxActive: 1, tasks: 8, calls: 4,
	},
}

func sampleCommand(t *term) *cli.Command {
	group := func(name, usage, help string, specs []sampleSpec, prefix string, more ...*cli.Command) *cli.Command {
		c := &cli.Command{Name: name, Usage: usage, Description: help, Action: group}
		for _, s := range specs {
			c.Commands = append(c.Commands, s.command(t, prefix+s.name))
		}
		c.Commands = append(c.Commands, more...)
		return c
	}
	article := group("article", "the three modules of the article of 2007, on Linux 2.6.18",
		"The modules of a much-read article of 2007 on kprobes, as they ran on Linux 2.6.18.\n\n"+
			examples("kprobelab sample article kprobe", "kprobelab sample article jprobe", "kprobelab sample article kretprobe"),
		articleSpecs, "article ")
	return group("sample", "run the kernel's sample modules, with their output",
		sampleHelp+examples("kprobelab sample kprobe", "kprobelab sample kretprobe --profile 5.10",
			"kprobelab sample jprobe", "kprobelab sample article kretprobe"),
		sampleSpecs, "", article)
}

// group is a command that only has commands.
func group(_ context.Context, c *cli.Command) error {
	if c.Args().Present() {
		return noCommand(c, c.Args().First())
	}
	return cli.ShowSubcommandHelp(c)
}

// sampleRun is what the command line asks for.
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
		Description: s.help + "\n\n" + sampleJSONHelp + examples(s.examples...) + "\n" + exitHelp,
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
