package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/urfave/cli/v3"

	"kprobelab/boot"
	"kprobelab/booted"
	"kprobelab/internal/bounded"
	"kprobelab/internal/mailbox"
	"kprobelab/internal/outfile"
	"kprobelab/internal/printable"
	"kprobelab/internal/qemu"
	"kprobelab/internal/report"
	"kprobelab/internal/terminal"
	"kprobelab/kernels"
	"kprobelab/kimage"
	"kprobelab/run"
)

func bootCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:        "boot",
		Usage:       "boot a kernel under QEMU's emulation, and save its memory or run a program there",
		ArgsUsage:   "[IMAGE]",
		Description: described("boot"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the dump to `FILE`"},
			&cli.StringFlag{Name: "format", Value: string(boot.Zstd), Usage: "of the dump: zstd, one stream of the ELF; or elf, in which zeros are holes"},
			&cli.StringSliceFlag{Name: "file", Usage: "put a file or a folder into the guest, permissions kept, as `HOST:GUEST` (repeatable)"},
			&cli.StringFlag{Name: "memory", Value: "128M", Usage: "how much memory the guest has, as 128M or 1G"},
			&cli.IntFlag{Name: "cpus", Value: 1, Usage: "how many processors it has"},
			&cli.StringFlag{Name: "cpu", Value: kimage.DefaultCPU, Usage: "which, as QEMU names it: `MODEL[,+feature][,-feature]`; max has all"},
			&cli.BoolFlag{Name: "kaslr", Usage: "let the kernel choose where it is in memory (KASLR)"},
			&cli.StringFlag{Name: "append", Usage: "more `WORDS` for the kernel's command line"},
			&cli.StringSliceFlag{Name: "module", Usage: "load this .ko `FILE`, packed or not, before anything else (repeatable)"},
			&cli.StringSliceFlag{Name: "task", Usage: "start a program of the guest and leave it running, as `'PROGRAM ARGS'` (repeatable)"},
			&cli.StringFlag{Name: "exec", Usage: "run a program of the guest to its end, as `'PROGRAM ARGS'`"},
			&cli.StringFlag{Name: "stdin", Usage: "what the program of --exec reads, from `FILE`, - for standard input"},
			rawFlag(t),
			&cli.StringSliceFlag{Name: "env", Usage: "more environment for --exec, `NAME=VALUE` (repeatable)"},
			&cli.StringFlag{Name: "cwd", Value: "/", Usage: "the `FOLDER` that --exec begins in"},
			&cli.StringFlag{Name: "tracing", Usage: "write the lines of `FILE` to kprobe_events, enable the events, and print trace after --exec"},
			&cli.StringSliceFlag{Name: "tracefs", Usage: "with --tracing, write to a file of tracing before the events are enabled, as `FILE=TEXT` (repeatable)"},
			&cli.StringFlag{Name: "trace-output", Usage: "write trace to `FILE` instead"},
			&cli.StringFlag{Name: "symbols", Usage: "System.map `FILE` in place of the image's symbols"},
			&cli.StringFlag{Name: "qemu", Usage: "the `PROGRAM` qemu-system-x86_64"},
			&cli.DurationFlag{Name: "timeout", Value: bootTimeout, Usage: "the longest that all may take"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "show the guest's console"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON object"},
		},
		Action: upTo(1, func(ctx context.Context, c *cli.Command) error { return bootKernel(ctx, t, c) }),
	}
}

// booting is one boot command: its plan, and the output of its program.
type booting struct {
	t *term
	c *cli.Command

	o boot.Plan
	// out and errors keep the program's standard output and standard error, with --json.
	out, errors kept
}

func bootKernel(ctx context.Context, t *term, c *cli.Command) error {
	// An interrupt ends QEMU, and what lies in temporary folders goes.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	b := &booting{t: t, c: c}
	if err := b.usage(); err != nil {
		return err
	}
	if err := b.inputs(); err != nil {
		return err
	}
	if err := b.image(ctx); err != nil {
		return err
	}
	found, err := b.qemu(ctx)
	if err != nil {
		return fail(exitImage, err)
	}
	b.o.QEMU = found.Path
	b.t.Sayf("booting %s (%s) under QEMU %s", printable.Name(b.o.Kernel.Name), b.o.Kernel.Release, found.Version)
	wait := &terminal.Lines{Stage: "boot", T: t.Term}
	if b.o.Console == nil {
		b.o.Console = wait
	}
	b.o.AtStop = func(d *boot.Done) {
		wait.End()
		b.booted(d)
	}
	done, err := b.o.Run(ctx)
	wait.End()
	t.ProgressDone()
	if err != nil {
		if e := (*boot.Error)(nil); c.Bool("verbose") && errors.As(err, &e) {
			e.Console = nil // it was shown as it came
		}
		return t.bootFailed(err, b.o.CPU)
	}
	return b.finish(done, found.Version)
}

// usage reads the flags that no file is needed for.
func (b *booting) usage() error {
	c := b.c
	o := &b.o.Options
	o.CPU, o.Limit, o.KASLR = c.String("cpu"), c.Duration("timeout"), c.Bool("kaslr")
	if err := onMachine(c, o); err != nil {
		return err
	}
	format := boot.Format(c.String("format"))
	switch {
	case c.String("output") == "" && c.String("exec") == "":
		return usagef("boot needs -o FILE for a dump, or --exec 'PROGRAM ARGS'; try %s --help", c.FullName())
	case format != boot.Zstd && format != boot.ELF:
		return usagef("--format: %q is neither zstd nor elf", format)
	case o.Limit <= 0:
		return usagef("--timeout: %s is no time to boot in", o.Limit)
	case o.CPU == "" || strings.ContainsAny(o.CPU, " \n"):
		return usagef("--cpu: %q is no model", o.CPU)
	case c.IsSet("exec"):
	case c.IsSet("stdin"), c.IsSet("env"), c.IsSet("cwd"), c.IsSet("tracing"), c.IsSet("trace-output"):
		return usagef("--stdin, --env, --cwd, --tracing and --trace-output go with --exec")
	}
	for _, name := range []string{"trace-output", "tracefs"} {
		if c.IsSet(name) && !c.IsSet("tracing") {
			return usagef("--%s goes with --tracing", name)
		}
	}
	var err error
	if b.o.Writes, err = run.ParseTraceWrites(c.StringSlice("tracefs")); err != nil {
		return err
	}
	if c.Bool("verbose") {
		o.Console = b.t.Err
	}
	if file := c.String("output"); file != "" {
		b.o.Dump = &boot.Dump{File: file, Format: format, Progress: b.t.Progress}
	}
	for _, v := range c.StringSlice("env") {
		if name, _, ok := strings.Cut(v, "="); !ok || name == "" {
			return usagef("--env %q: want NAME=VALUE", v)
		}
	}
	if cwd := c.String("cwd"); !strings.HasPrefix(cwd, "/") {
		return usagef("--cwd %q: want an absolute path of the guest", cwd)
	}
	for _, line := range c.StringSlice("task") {
		task, err := guestProgram(line)
		if err != nil {
			return usagef("--task: %w", err)
		}
		b.o.Tasks = append(b.o.Tasks, task)
	}
	return nil
}

// inputs reads the files that the flags name.
func (b *booting) inputs() error {
	c := b.c
	for _, out := range []string{c.String("output"), c.String("trace-output")} {
		if out == "" {
			continue
		}
		if err := boot.CheckOutput(out); err != nil {
			return fail(exitImage, err)
		}
	}
	for _, pair := range c.StringSlice("file") {
		list, err := boot.ParseFiles(pair)
		if errors.Is(err, boot.ErrFiles) {
			return usagef("--file: %w", err)
		}
		if err != nil {
			return fail(exitImage, err)
		}
		b.o.Files = append(b.o.Files, list...)
	}
	for _, file := range c.StringSlice("module") {
		m, err := boot.ReadModule(file)
		if err != nil {
			return fail(exitImage, err)
		}
		b.o.Modules, b.o.Files = append(b.o.Modules, m), append(b.o.Files, m.File)
	}
	for _, task := range b.o.Tasks {
		if !boot.Has(b.o.Files, task.Args[0]) {
			return notInGuest("task", task)
		}
	}
	if c.IsSet("tracing") {
		text, err := bounded.ReadFile(c.String("tracing"), bounded.TracingFile)
		if err != nil {
			return err
		}
		b.o.Definitions = string(text)
	}
	if !c.IsSet("exec") {
		return nil
	}
	return b.program()
}

// program reads --exec, and what goes with it.
func (b *booting) program() error {
	c := b.c
	input, err := programInput(c.String("stdin"), mailbox.Size)
	if err != nil {
		return err
	}
	exec, err := guestProgram(c.String("exec"))
	if err == nil {
		exec.Env, exec.Dir, exec.Stdin = append(exec.Env, c.StringSlice("env")...), c.String("cwd"), input
		exec.Stdout, exec.Stderr = b.t.RawOut, b.t.RawErr
		if c.Bool("json") {
			exec.Stdout, exec.Stderr = &b.out, &b.errors
		}
		err = boot.CheckProgram(exec)
	}
	if err != nil {
		return usagef("--exec: %w", err)
	}
	// A task may have made the program by then.
	if len(b.o.Tasks) == 0 && !boot.Has(b.o.Files, exec.Args[0]) {
		return notInGuest("exec", exec)
	}
	b.o.Exec = exec
	return nil
}

func notInGuest(flag string, p *booted.Program) error {
	return usagef("--%s: the guest has no %s: --file HOST:%s puts one there", flag, p.Args[0], p.Args[0])
}

// guestProgram is a program of the guest, from 'PROGRAM ARGS'.
func guestProgram(line string) (*booted.Program, error) {
	c, err := mailbox.Program(mailbox.Exec, line, nil)
	return &booted.Program{Args: c.Args, Env: c.Env}, err
}

// image finds the kernel.
func (b *booting) image(ctx context.Context) error {
	path := b.c.Args().First()
	if path == "-" {
		return usagef("the guest kernel inside the program does not boot: name a vmlinuz")
	}
	if path == "" {
		var err error
		if path, err = b.anyImage(ctx); err != nil {
			return fail(exitImage, err)
		}
	}
	var err error
	b.o.Kernel, err = boot.Open(path, &kimage.Options{SystemMap: b.c.String("symbols"), Progress: b.t.Progress})
	b.t.ProgressDone()
	switch {
	case errors.Is(err, boot.ErrNoSymbols):
		return fail(exitImage, fmt.Errorf("%s: %s", path, noSymbols))
	case errors.Is(err, boot.ErrKernel):
		return fail(exitImage, fmt.Errorf("%s: %w", path, err))
	case err != nil:
		return fail(exitImage, imageFirst(b.c, path, err))
	}
	if err := b.o.Check(); err != nil {
		return fail(exitImage, fmt.Errorf("%s: %w", path, err))
	}
	return nil
}

// anyImage is the running kernel's image, or Debian's newest.
func (b *booting) anyImage(ctx context.Context) (string, error) {
	found, err := kernels.FindRunning()
	if err == nil {
		return found.Image, nil
	}
	b.t.Sayf("the running kernel's image cannot be read; Debian's newest cloud kernel is taken")
	s, err := b.t.store(b.c)
	if err != nil {
		return "", err
	}
	k, err := s.Fetch(ctx, "")
	b.t.ProgressDone()
	if err != nil {
		return "", err
	}
	return k.Image, nil
}

func (b *booting) qemu(ctx context.Context) (qemu.Found, error) {
	if named := b.c.String("qemu"); named != "" {
		return qemu.Try(ctx, named)
	}
	return qemu.Find(ctx, func() (string, error) {
		s, err := b.t.store(b.c)
		if err != nil {
			return "", err
		}
		defer b.t.ProgressDone()
		return s.QEMU(ctx)
	})
}

// booted tells that the machine is at the stop point.
func (b *booting) booted(d *boot.Done) {
	if b.o.KASLR {
		b.t.Sayf("KASLR put the kernel %#x bytes past where it is linked", d.Slide)
	}
	if b.o.Dump != nil {
		b.t.Sayf("at the stop point after %.1f s; saving the memory", d.Boot.Seconds())
	}
}

// kept is the output of a program, for --json.
type kept struct{ strings.Builder }

func (k *kept) Write(p []byte) (int, error) {
	if k.Len()+len(p) > bounded.GuestOutput {
		return 0, fmt.Errorf("the program writes more than %d MiB", bounded.GuestOutput>>20)
	}
	return k.Builder.Write(p)
}

// finish prints what has been done.
func (b *booting) finish(d *boot.Done, qemu string) error {
	r := b.o.Report(d, qemu)
	if file := b.c.String("trace-output"); file != "" {
		if err := outfile.Write(file, []byte(r.Trace)); err != nil {
			return err
		}
		r.Trace = ""
	}
	var err error
	if b.c.Bool("json") {
		if r.Exec != nil {
			r.Exec.Stdout, r.Exec.Stderr = b.out.String(), b.errors.String()
		}
		err = r.WriteJSON(b.t.Out)
	} else {
		err = b.print(r)
	}
	if err == nil && r.Exec != nil && r.Exec.Code != 0 {
		err = fail(r.Exec.Code, fmt.Errorf("%s ended with exit code %d", r.Exec.Args[0], r.Exec.Code))
	}
	return err
}

func (b *booting) print(l *boot.Report) error {
	if _, err := fmt.Fprint(b.t.Out, l.Trace); err != nil {
		return err
	}
	if l.Output == "" {
		return nil
	}
	_, err := fmt.Fprintf(b.t.Out, "%s: %s, %s, %d MiB of memory in %.1f MB; booted in %.1f s, saved in %.1f s\n",
		printable.Name(l.Output), l.Kernel, report.Counted(l.CPUs, "CPU"), l.Memory>>20, float64(l.Bytes)/1e6, l.Boot, l.Save)
	return err
}

// bootFailed shows the end of a console where that may say why a kernel did not boot, and finds the exit code.
func (t *term) bootFailed(err error, cpu string) error {
	var e *boot.Error
	if errors.As(err, &e) {
		for _, line := range e.Console {
			fmt.Fprintln(t.Err, terminal.Indent(line))
		}
		if errors.Is(err, boot.ErrCPU) {
			return usagef("--cpu %s: %w", cpu, err)
		}
		return fail(exitRefused, err)
	}
	var refused *boot.RefusedError
	if errors.As(err, &refused) || errors.Is(err, boot.ErrDefinition) || errors.Is(err, boot.ErrTraceWrite) {
		return fail(exitRefused, err)
	}
	return fail(exitImage, err)
}
