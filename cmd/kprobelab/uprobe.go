package main

import (
	"context"
	"errors"
	"slices"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/mailbox"
	"kprobelab/profile"
	"kprobelab/run"
)

// programDoor holds the options of a command line that runs a program without a kernel.
type programDoor struct {
	run.Program
	// files are the values of --file, stdin the file that the program reads.
	files []string
	stdin string
	shown
}

func uprobeCommand(t *term) *cli.Command {
	p := &programDoor{}
	return &cli.Command{
		Name:        "uprobe",
		Usage:       "run a program without a kernel, with uprobes and watchpoints",
		ArgsUsage:   "PROGRAM [ARGS]",
		Description: described("uprobe"),
		Flags: slices.Concat(uprobeFlags(&p.Points, &p.Counters), []cli.Flag{
			&cli.StringSliceFlag{Name: "event", Aliases: []string{"e"}, Destination: &p.Events,
				Usage: "define and enable a uprobe `EVENT`, as written to uprobe_events or as for probe -D; prints the trace (repeatable)"},
			&cli.IntFlag{Name: "pid", Destination: &p.PID,
				Usage: "probe only the process `PID`: 100 is the first, 101 what it forks first (default: all)"},
		}, watchFlags(&p.Watches, &p.Registers), []cli.Flag{
			&cli.StringSliceFlag{Name: "file", Destination: &p.files,
				Usage: "let the program open this `FILE`, or the files of a folder, as NAME=FILE by another name (repeatable)"},
			&cli.StringSliceFlag{Name: "env", Destination: &p.Env, Usage: "its environment, `NAME=VALUE` (repeatable)"},
			&cli.StringFlag{Name: "stdin", Destination: &p.stdin, Usage: "what it reads, from `FILE`, - for standard input"},
		}, machineFlags(&p.Seed, &p.Budget, &p.Timeout), p.shown.flags(t), []cli.Flag{
			profileFlag(), cpuFlag(), engineFlag(),
		}),
		Action: func(_ context.Context, c *cli.Command) error { return p.do(t, c) },
	}
}

// do checks the plan, reads the files, and runs the program.
func (p *programDoor) do(t *term, c *cli.Command) error {
	if c.Args().Len() == 0 {
		return usagef("there is no PROGRAM to run; try %s --help", c.FullName())
	}
	var err error
	if p.Rules, err = profileOf(c, profile.Default); err != nil {
		return err
	}
	if c.IsSet("pid") && p.PID == 0 {
		return usagef("--pid 0: the first process has the number %d", run.FirstPID)
	}
	p.Args, p.CPUModel, p.MaxOutput, p.Trace = c.Args().Slice(), c.String("cpu"), p.maxOutput, p.trace()
	p.Steps = p.inSteps()
	if p.traceOutput != "" && len(p.Points)+len(p.Events) == 0 {
		return usagef("--trace-output goes with -e, --uprobe or --uretprobe")
	}
	if err := errors.Join(p.shown.check(), p.Program.Check()); err != nil {
		return err
	}
	if p.Stdin, err = programInput(p.stdin, mailbox.Size); err != nil {
		return err
	}
	if p.Files, err = run.OpenFiles(p.Args[0]); err != nil {
		return err
	}
	for _, f := range p.files {
		if err := p.Files.Add(f); err != nil {
			return err
		}
	}
	if p.Dir, err = run.GuestName("."); err != nil {
		return err
	}
	return p.printed(t, &run.TextOptions{Log: t.Err}, func(to run.Sink) error { return p.Program.Run(to) })
}
