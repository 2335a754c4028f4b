package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/urfave/cli/v3"

	"kprobelab/boot"
	"kprobelab/bpf/losses"
	"kprobelab/internal/bounded"
	"kprobelab/internal/cmdline"
	"kprobelab/internal/mailbox"
	"kprobelab/kernels"
	"kprobelab/run"
	"kprobelab/shard"
)

// execDoor holds the options of an exec command line.
type execDoor struct {
	kernelDoor
	env        []string
	dir, stdin string
	// after are the jobs after the program; those before it are the plan's.
	after []run.Job
	host  run.HostOptions
	// exits is whether the exit codes of programs are printed, as run --exec has it.
	exits bool
	// junit is the file for JUnit XML, "" for none.
	junit  string
	repeat int
	part   shard.Part
}

func execCommand(t *term) *cli.Command {
	p := &execDoor{}
	return &cli.Command{
		Name:        "exec",
		Usage:       "run a program on a booted kernel, and probe the kernel meanwhile",
		ArgsUsage:   "[--] PROGRAM [ARGS]",
		Description: described("exec"),
		Flags: slices.Concat([]cli.Flag{
			&cli.StringSliceFlag{Name: "kernel", Usage: "the `KERNEL`: a dump, an image, or a release in words as kprobelab kernels has them (several: side by side, compared)"},
			&cli.BoolFlag{Name: "offline", Usage: "fetch nothing, and say what is missing"},
			&cli.StringFlag{Name: "junit", Destination: &p.junit, Usage: "write the exit codes of all kernels to `FILE` as JUnit XML, for CI"},
			shardFlag(&p.part, "the kernels"),
			&cli.StringSliceFlag{Name: "env", Destination: &p.env, Usage: "more environment, `NAME=VALUE`, or NAME or NAME* of the host's (repeatable)"},
			&cli.StringFlag{Name: "cwd", Destination: &p.dir, DefaultText: "/", Usage: "the `FOLDER` that the program begins in"},
			&cli.StringFlag{Name: "stdin", Destination: &p.stdin, Usage: "what it reads, from `FILE`, - for standard input"},
			&cli.GenericFlag{Name: "before", Value: cmdline.Parsed(&p.Jobs, run.ParseJob),
				Usage: "do this `JOB` before: a call, name(arg, ...), or a program, 'PROGRAM ARGS' (repeatable)"},
			&cli.GenericFlag{Name: "after", Value: cmdline.Parsed(&p.after, run.ParseJob), Usage: "do this `JOB` after (repeatable)"},
			&cli.IntFlag{Name: "repeat", Destination: &p.repeat, HideDefault: true,
				Usage: "run it so many `TIMES`: with --seed by that seed and those after it, up to the first that fails; else all must write the same"},
			&cli.BoolFlag{Name: "exits", Destination: &p.exits, Hidden: true},
		}, hostFlags(&p.host), lossFlags(&p.host.Asked), p.probes(), uprobeFlags(&p.Points, &p.Stats), p.machine(), p.shown.flags(t), []cli.Flag{
			profileFlag(), configFlag(), symbolsFlag(), engineFlag(),
		}),
		Action: func(ctx context.Context, c *cli.Command) error {
			return p.do(ctx, t, c)
		},
	}
}

// do checks the plan, finds the booted kernel, and has the plan done.
func (p *execDoor) do(ctx context.Context, t *term, c *cli.Command) error {
	if err := cmdline.OneOf(c, "shard", "repeat", "junit"); err != nil {
		return err
	}
	if err := p.program(t, c); err != nil {
		return err
	}
	if err := p.check(c); err != nil {
		return err
	}
	if list := c.StringSlice("kernel"); len(list) > 1 || p.junit != "" || c.IsSet("repeat") || !p.part.Whole() {
		return p.matrix(ctx, t, c, list)
	}
	word, err := kernelOf(c, "")
	if err != nil {
		return err
	}
	fetching, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	kernel, err := t.bootedKernel(fetching, c, word)
	stop()
	if err != nil {
		return err
	}
	for _, j := range p.Jobs {
		if j.Host != nil {
			stop, err := give(j.Host, p.stdin)
			if err != nil {
				return err
			}
			defer stop()
		}
	}
	err = p.kernelDoor.do(t, c, kernel, &run.TextOptions{Exits: p.exits, Log: p.log(t)})
	if exit := (*run.ExitError)(nil); errors.As(err, &exit) && !p.exits {
		return fail(exit.Code, cmdline.ErrSaid) // as a shell has it: the exit code says it
	}
	return err
}

// program puts PROGRAM among the jobs, and gives all programs what the flags say. What a program needs of the host comes in
// here: the plan's jobs have it as a booted.Program.
func (p *execDoor) program(t *term, c *cli.Command) error {
	args := c.Args().Slice()
	if len(args) == 0 && len(p.Jobs) == 0 {
		return usagef("there is no PROGRAM to run; try %s --help", c.FullName())
	}
	if len(args) > 0 {
		p.Jobs = append(p.Jobs, run.ProgramJob(args))
	}
	env, err := run.Environment(p.env, os.Environ())
	if err != nil {
		return err
	}
	own := len(p.Jobs) - 1
	p.Jobs = append(p.Jobs, p.after...)
	alone := len(args) > 0 && !p.exits // the program has the input for itself, as it comes
	input := []byte(nil)
	if !alone {
		input, err = programInput(p.stdin, mailbox.Size)
	}
	for _, j := range p.Jobs {
		if j.Program != nil {
			j.Program.Env, j.Program.Dir, j.Program.Stdin = run.Latest(append(j.Program.Env, env...)), p.dir, input
		}
	}
	if err != nil || !alone {
		return err
	}
	store := func() (*kernels.Store, error) { return t.store(c) }
	p.host.ModuleFiles, p.host.Builder = kernels.Modules(store), kernels.Builder(store)
	return p.host.HostJob(&p.Jobs[own])
}

// log gets what the kernel and kprobelab say: standard output is the program's.
func (p *execDoor) log(t *term) io.Writer {
	if p.exits {
		return nil
	}
	return t.Err
}

// bootedKernel is the dump of a kernel of --kernel: it is fetched and booted once if need be. Without a name it is
// the newest that is kept, or the newest there is.
func (t *term) bootedKernel(ctx context.Context, c *cli.Command, word string) (string, error) {
	switch {
	case word == "-":
		return "", usagef("the guest kernel inside the program runs no programs: name a booted kernel, or one to boot")
	case word != "" && !exists(word) && !kernels.IsName(word):
		return "", noKernel(word)
	}
	if image, err := boot.IsImage(word); err == nil && !image {
		return word, nil // a dump: the user's folder may be closed to this user
	}
	s, err := t.store(c)
	if err != nil {
		return "", fail(exitImage, err)
	}
	o := &boot.Options{}
	o.On(kernels.DefaultMachine)
	return t.keep(s, o, func(b *boot.Keeper) (string, error) {
		return b.Find(ctx, word)
	})
}

// hostFlags returns exec's flags for the files of the host, the program's rights, and what is beside the program.
func hostFlags(h *run.HostOptions) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "root", Destination: &h.Root, Usage: "take interpreters and libraries from the unpacked system in `DIR`, not from the host"},
		&cli.StringSliceFlag{Name: "file", Destination: &h.Files, Usage: "take a file or a folder along, `HOST[:GUEST]`; programs in it bring their libraries (repeatable)"},
		&cli.BoolFlag{Name: "here", Destination: &h.Here, Usage: "take the current folder along, without hidden folders and caches, and begin in it"},
		&cli.StringSliceFlag{Name: "out", Destination: &h.Outs, Usage: "take a file or a folder out afterwards, `GUEST:HOST` (repeatable)"},
		&cli.StringSliceFlag{Name: "workload", Destination: &h.Workloads,
			Usage: "run this line of the guest's shell, `COMMAND`, or " + strings.Join(run.WorkloadNames(), ", ") + ", beside the program when that is ready; at its end the program gets SIGINT (repeatable)"},
		&cli.StringFlag{Name: "ready", Destination: &h.Ready, DefaultText: "when it sleeps", Usage: "the program is ready when a line of its output matches `REGEX`"},
		&cli.DurationFlag{Name: "for", Destination: &h.For, HideDefault: true, Usage: "send SIGINT to the program after this much virtual `TIME`, as in 5s"},
		&cli.GenericFlag{Name: "user", Value: right("user", h.Rights.SetUser), Usage: "run the program as this user, `UID[:GID]`, root or nobody"},
		&cli.GenericFlag{Name: "cap", Value: right("cap", h.Rights.AddCapabilities),
			Usage: "let it have these capabilities and no others, `NAME,...` of capabilities(7), as bpf,perfmon, all or none (repeatable)"},
		&cli.GenericFlag{Name: "ulimit", Value: right("ulimit", h.Rights.SetLimit), Usage: "limit a resource of it, `NAME=SOFT[:HARD]`, as memlock=64K (repeatable)"},
		&cli.StringSliceFlag{Name: "modprobe", Destination: &h.Modprobe,
			Usage: "load modules of the kernel's own package first, `NAME,...`, and their dependencies; veth brings the devices veth0 and veth1 (repeatable)"},
		&cli.StringFlag{Name: "lockdown", Destination: &h.Lockdown, Usage: "lock the kernel down, `LEVEL` of kernel_lockdown(7): integrity or confidentiality"},
		&cli.StringFlag{Name: "core", Destination: &h.Core, Usage: "if the kernel panics, write its memory to `FILE`, for crash and gdb"},
		&cli.GenericFlag{Name: "module", Value: cmdline.Each(func(text string) error { h.Module = text; return nil }),
			Usage: "load a module of the kernel's before, 'FILE.ko [PARAM=VALUE]', unload it after, and say what it has left"},
		&cli.GenericFlag{Name: "build", Value: cmdline.Each(func(text string) error { h.Build = text; return nil }),
			Usage: "the same with the module of a folder, 'DIR [PARAM=VALUE]', built for each kernel with its own headers, make and gcc"},
	}
}

// lossFlags returns the flags about the BPF programs of a run.
func lossFlags(a *losses.Asked) []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: "losses", Destination: &a.Losses, Usage: "print what became of each call that the BPF programs probe, by stage, with the cause of each loss"},
		&cli.Uint64Flag{Name: "max-cost", Destination: &a.MaxCost, HideDefault: true, Usage: "exit code 1 if a run of the BPF programs takes more than `N` instructions"},
		&cli.StringFlag{Name: "coverage", Destination: &a.Coverage, Usage: "write the lines of C that the BPF programs ran to `FILE`, as lcov has it, of all kernels together"},
	}
}

// right reads the values of a flag with set, and names the flag in an error.
func right(flag string, set func(string) error) cmdline.Each {
	return func(text string) error {
		if err := set(text); err != nil {
			return fmt.Errorf("--%s %w", flag, err)
		}
		return nil
	}
}

// give gives a program what the user types, and the user's signals: the third one ends kprobelab itself.
func give(p *run.HostProgram, stdin string) (stop func(), err error) {
	switch stdin {
	case "", "-":
		p.Input = os.Stdin
	default:
		if p.Stdin, err = bounded.ReadFile(stdin, bounded.GuestBytes); err != nil {
			return nil, err
		}
	}
	return p.TakeSignals(), nil
}
