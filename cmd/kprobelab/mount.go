package main

import (
	"context"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/watch"
)

const mountHelp = `Mounts the tracing files of a machine that runs IMAGE at DIR, an empty directory, with
FUSE: what /sys/kernel/tracing is on a real machine. It stays until DIR is unmounted, or
until it gets an interrupt (Ctrl-C) or SIGTERM; users of the mount get errors then, and
nothing waits.

DIR cannot be where the real kernel's files belong (/sys/kernel/tracing, /sys/kernel/debug,
/tracing, /trace): trace-cmd and perf, as root, would mount these over ours. The checkout's
scripts/with-tracefs.sh DIR COMMAND runs trace-cmd on our files (docs/tracing.md).

Root mounts by itself. An ordinary user needs fusermount3 (Debian's package fuse3).

On the dump of a booted kernel (kprobelab boot) the files are that kernel's own: each use of one is
a system call of its init. Things happen there by kprobelab/call.

Over the guest kernel inside the program, what is done with the files happens in the guest
too: its sys_open, vfs_open, vfs_read, vfs_write run, and kernel_clone for every process
that comes to the mount for the first time, so that probes on them fire. Beside the
kernel's own files there are
   kprobelab/call      echo 'snprintf(buf[64], 64, "%d", 42)' here calls it; cat shows
                       what the last calls returned
   kprobelab/kallsyms  the guest's symbols, as /proc/kallsyms has them
   kprobelab/version   the guest's banner, as /proc/version has it
   kprobelab/root      the guest's /dev/null and /tmp: what is done there happens in it too

`

// mounting is what the command line asks for.
type mounting struct {
	cpus    int
	seed    int64
	budget  uint64
	timeout time.Duration
	debug   bool
	dir     string
	watches []watch.Place
	// registers is whether the watchpoints take the four debug registers.
	registers bool
}

func mountCommand(t *term) *cli.Command {
	p := &mounting{}
	return &cli.Command{
		Name:      "mount",
		Usage:     "mount the tracing files (kprobe_events, trace_pipe, …) at a directory",
		ArgsUsage: "DIR [IMAGE]",
		Description: mountHelp + imageHelp + "\n\n" + examples(
			"mkdir t; kprobelab mount t &",
			"echo 'p:myprobe snprintf size=%si fmt=+0(%dx):string' > t/kprobe_events",
			"echo 1 > t/events/kprobes/myprobe/enable",
			"echo 'snprintf(buf[64], 64, \"%s has %d\", \"abc\", 42)' > t/kprobelab/call",
			"cat t/trace",
			"umount t",
			"kprobelab mount --watch last_pid t",
		) + "\n" + exitHelp,
		Flags: append([]cli.Flag{
			&cli.IntFlag{Name: "cpus", Value: 2, Destination: &p.cpus, Usage: "number of `CPUS`"},
			&cli.Int64Flag{Name: "seed", Destination: &p.seed, Usage: "`SEED` of the scheduler's choices"},
			&cli.Uint64Flag{Name: "budget", Value: 100_000_000, Destination: &p.budget,
				Usage: "stop a call after this many guest `INSTRUCTIONS`"},
			timeoutFlag(&p.timeout),
			&cli.GenericFlag{Name: "watch", Value: &watchFlag{&p.watches},
				Usage: "print who accesses `PLACE`, as run --watch does (repeatable); no file of tracing has it"},
			&cli.BoolFlag{Name: "registers", Destination: &p.registers, Usage: "let --watch have what the processor's four debug registers can have"},
			&cli.BoolFlag{Name: "debug", Destination: &p.debug, Usage: "print every request of the file system"},
		}, imageFlags()...),
		Action: func(ctx context.Context, c *cli.Command) error { return p.run(ctx, t, c) },
	}
}

func (p *mounting) run(ctx context.Context, t *term, c *cli.Command) error {
	if err := atMost(c, 2); err != nil {
		return err
	}
	if p.dir = operand(c, 0); p.dir == "" {
		return usagef("where to mount is missing: give an empty directory; try %s --help", c.FullName())
	}
	if p.cpus < 1 || p.cpus > bounded.CPUs {
		return usagef("--cpus %s: there can be 1 to %d CPUs", strconv.Itoa(p.cpus), bounded.CPUs)
	}
	if err := notNegative(p.timeout); err != nil {
		return err
	}
	if p.registers && len(p.watches) == 0 {
		return usagef("--registers goes with --watch")
	}
	// The place is one look at a folder, an image some seconds of reading.
	if err := p.checkPlace(); err != nil {
		return err
	}
	img, err := openImage(t, c, operand(c, 1))
	if err != nil {
		return err
	}
	if !c.IsSet("budget") {
		p.budget = mountBudget(img.Core() != nil, p.budget)
	}
	return p.serve(ctx, t, img)
}

// mountBudget is the bound on one use of a file that nobody has told.
func mountBudget(booted bool, usual uint64) uint64 {
	if booted {
		return bounded.MountBudget
	}
	return usual
}
