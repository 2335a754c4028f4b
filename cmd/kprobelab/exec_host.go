package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/internal/cmdline"
	"kprobelab/run"
)

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
		&cli.StringFlag{Name: "core", Destination: &h.Core, Usage: "if the kernel panics, write its memory to `FILE`, for crash and gdb"},
		&cli.GenericFlag{Name: "module", Value: cmdline.Each(func(text string) error { h.Module = text; return nil }),
			Usage: "load a module of the kernel's before, 'FILE.ko [PARAM=VALUE]', unload it after, and say what it has left"},
	}
}

// right has set read the value of a flag.
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
