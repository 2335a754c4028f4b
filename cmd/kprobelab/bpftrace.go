package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/internal/script"
	"kprobelab/internal/script/attach"
	"kprobelab/internal/script/bpftrace"
	"kprobelab/internal/script/ways"
	"kprobelab/kimage"
)

const bpftraceHelp = `Runs a script of bpftrace's language: its probes are kprobes and kretprobes of this program,
planted in the image that -r names (the guest kernel inside the program without it), its timers
tick in virtual time.

Something has to happen on the image: --call calls a function or, on the dump of a booted kernel
(kprobelab boot), makes a system call; -c runs a program of the dump's files, as bpftrace's -c
does. The script ends when that has ended, or when it calls exit(). Without either, virtual time
passes until an interval has called exit(), for --for at most.

A script has the verdicts, messages and output of bpftrace 0.23.2; docs/bpftrace.md lists what is
not there. Types, parameters and members are those of the image's BTF.

`

const bpftraceExit = `Exit codes: 0 done; the code that exit() is called with; 1 the script is wrong, has no probe to
attach, or ended with an error; 255 the kernel refuses one of its probes; 2 wrong use; 3 a file
cannot be read; 4 this build has no engine; 5 the engine failed. How the program of -c ends does
not count.`

// exitUnattached is bpftrace's code where the kernel refuses a probe.
const exitUnattached = 255

// bpftraceRun is what the command line asks for.
type bpftraceRun struct {
	scriptRun
	image string
	o     bpftrace.Options
}

func bpftraceCommand(t *term) *cli.Command {
	r := &bpftraceRun{}
	return &cli.Command{
		Name:      "bpftrace",
		Usage:     "run a bpftrace script on an image or a booted kernel's dump",
		ArgsUsage: "SCRIPT.bt|-|-e SCRIPT [ARGS]",
		Description: bpftraceHelp + examples(
			"kprobelab bpftrace -e 'kprobe:vfs_read { @[func] = count(); }' --call 'sys_open(\"/etc/hostname\", 0, 0)' --call 'sys_read(3, buf[8], 8)'",
			"kprobelab bpftrace -r kernel.core -c '/bin/busybox cat /etc/hostname' -e 'tracepoint:syscalls:sys_enter_openat { printf(\"%s %s\\n\", comm, str(args.filename)); }'",
			"kprobelab bpftrace -r kernel.core -c /bin/calls -e 'fentry:vfs_open { @[str(args.path->dentry->d_name.name)] = count(); }'",
			"kprobelab bpftrace -f json script.bt",
			"kprobelab bpftrace -r vmlinuz -lv 'fentry:vfs_read*'",
			"kprobelab bpftrace --dry-run script.bt",
		) + "\n" + bpftraceExit,
		UseShortOptionHandling: true,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "script", Aliases: []string{"e"}, Usage: "the `SCRIPT` itself, not a file's name"},
			&cli.StringFlag{Name: "release", Aliases: []string{"r"}, Destination: &r.image, Usage: "run on this `IMAGE` or dump (default: the guest kernel)"},
			&cli.StringFlag{Name: "command", Aliases: []string{"c"}, Destination: &r.command, Usage: "on a booted kernel, run the program `'PROGRAM ARGS'` and end when it ends"},
			&cli.StringSliceFlag{Name: "call", Destination: &r.calls, Usage: "make this `CALL`, as in kprobelab run (repeatable)"},
			&cli.StringFlag{Name: "format", Aliases: []string{"f"}, Value: "text", Usage: "the output's `FORMAT`: text or json"},
			&cli.BoolFlag{Name: "list", Aliases: []string{"l"}, Usage: "list the probes that the argument, a pattern, matches"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "with -l, the parameters, too"},
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, TakesFile: true, Usage: "write the script's output to this `FILE`"},
			&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "do not say how many probes are attached"},
			&cli.BoolFlag{Name: "no-warnings", Usage: "do not warn of what looks wrong in the script"},
			&cli.BoolFlag{Name: "dry-run", Usage: "check the script and its probes, and run nothing but BEGIN"},
			&cli.BoolFlag{Name: "unsafe", Destination: &r.o.Unsafe, Usage: "allow what only --unsafe allows"},
			&cli.BoolFlag{Name: "stats", Destination: &r.stats, Usage: "print, on standard error, how each probe was planted, its hits, misses and statements"},
			&cli.Uint64Flag{Name: "budget", Value: execBudget, Destination: &r.budget, Usage: "stop a call or the program after this many guest `INSTRUCTIONS`"},
			&cli.DurationFlag{Name: "for", Value: time.Minute, Destination: &r.wait, Usage: "without -c and --call, let this much virtual `TIME` pass at most"},
			decoderFlag("x86asm"), debuginfo(),
			rawFlag(t),
		}, imageFlags()...),
		Action: func(_ context.Context, c *cli.Command) error { return t.differences(r.run(t, c)) },
	}
}

func (r *bpftraceRun) run(t *term, c *cli.Command) (ferr error) {
	args := c.Args().Slice()
	name, text := "stdin", c.String("script")
	switch f := c.String("format"); f {
	case "text":
	case "json":
		r.o.JSON = true
	default:
		return usagef("-f %s: the formats are text and json", f)
	}
	switch {
	case c.Bool("list"):
		if len(args) > 1 {
			return usagef("-l takes one pattern; try %s --help", c.FullName())
		}
	case c.IsSet("script"):
	case len(args) == 0:
		return usagef("bpftrace takes a script: a file, - for standard input, or -e SCRIPT; try %s --help", c.FullName())
	default:
		var b []byte
		var err error
		if args[0] == "-" {
			b, err = bounded.ReadAll(os.Stdin, bounded.Script)
		} else {
			name = args[0]
			b, err = bounded.ReadFile(name, bounded.Script)
		}
		if err != nil {
			return &failure{exitImage, err}
		}
		text, args = string(b), args[1:]
	}
	img, err := openImage(t, c, r.image)
	if err != nil {
		return err
	}
	k, err := bpftraceKernel(newDefiner(c, img), img)
	if err != nil {
		return err
	}
	if c.Bool("list") {
		list, warnings := bpftrace.List(strings.Join(args, ""), c.Bool("verbose"), k)
		if !c.Bool("no-warnings") {
			fmt.Fprint(t.err, warnings)
		}
		fmt.Fprint(t.out, list)
		return nil
	}
	r.o.Args, r.o.Command, r.o.NoWarnings = args, r.command != "", c.Bool("no-warnings")
	if words := strings.Fields(r.command); len(words) > 0 {
		r.o.Program = words[0]
	}
	s, err := bpftrace.Analyze(name, text, &r.o, k)
	var p *bpftrace.Problems
	switch {
	case errors.As(err, &p):
		fmt.Fprint(t.err, p.Text())
		return &failure{exitRefused, errors.New("the script is not accepted")}
	case err != nil:
		return &failure{exitRefused, err}
	}
	if !c.Bool("no-warnings") {
		fmt.Fprint(t.err, s.Warnings)
	}
	if name := c.String("output"); name != "" {
		f, err := os.Create(name)
		if err != nil {
			return &failure{exitImage, err}
		}
		to := &latch{w: f, most: t.written.most, over: t.overOutput}
		defer func() {
			if to.err = errors.Join(to.err, f.Close()); to.err != nil {
				ferr = &failure{exitImage, errors.Join(to.err, ferr)}
			}
		}()
		out := *t
		out.out = to
		t = &out
	}
	if s.UserSymbols && r.o.Program != "" && k.Program != nil {
		r.program, _ = k.Program(r.o.Program) // without symbols its addresses are numbers
	}
	if !c.Bool("quiet") {
		fmt.Fprint(t.out, s.Attaching())
	}
	fmt.Fprint(t.err, s.Said(!c.Bool("no-warnings")))
	switch {
	case s.Attached == 0:
		return &failure{exitRefused, errSaid}
	case s.Failed:
		return &failure{exitUnattached, errSaid}
	}
	r.failed = errors.New("the script ended with an error")
	r.skipped, r.anyCode = 1<<64-1, true
	run := &attach.Script{
		Program: s.Program, Probes: s.Probes, Words: bpftrace.Words{}, First: s.Start,
		Last: func(th *script.Thread) {
			s.PrintMaps(th)
			fmt.Fprint(t.err, s.Dropped(th))
		},
	}
	if c.Bool("dry-run") {
		return r.dry(t, img, run)
	}
	return r.start(t, img, run)
}

// bpftraceKernel is what scripts can ask of an image.
func bpftraceKernel(d *definer, img *kimage.Image) (*bpftrace.Kernel, error) {
	k, err := stapKernel(d, img)
	if err != nil {
		return nil, err
	}
	b := &bpftrace.Kernel{Source: typesOf(d), Functions: k.Functions, Tracepoints: k.Tracepoints, HZ: k.HZ, Ways: ways.ForBpftrace(img)}
	b.Symbol = func(name string) (uint64, bool) {
		for _, s := range img.Lookup(name) {
			return uint64(s.Addr), true
		}
		return 0, false
	}
	if img.Core() != nil {
		events := newEvents(b.Source, img)
		b.Events, b.EventNames, b.Formats = events.named, events.names, events.formats
		b.Program = k.Program
		if t, ok := img.Types().Struct("bpf_trace_run_ctx"); ok {
			_, b.FunctionsAtReturns = t.Member("is_uprobe")
		}
		if set := img.BTFSet("btf_allowlist_d_path"); set != nil {
			b.PathIn = func(function string) bool {
				id, ok := img.Types().FuncID(function)
				return ok && slices.Contains(set, id)
			}
		}
	}
	return b, nil
}
