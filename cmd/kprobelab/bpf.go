package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/urfave/cli/v3"

	"kprobelab/bpf"
	"kprobelab/bpf/losses"
	"kprobelab/kernels"
	"kprobelab/kernels/bisect"
	"kprobelab/run"
	"kprobelab/shard"
)

func bpfCommand(t *term) *cli.Command {
	o, junit, part := &bpf.Options{Asked: &losses.Asked{}}, "", shard.Part{}
	return &cli.Command{
		Name:        "bpf",
		Usage:       "load the programs of a BPF object by booted kernels' own verifiers",
		ArgsUsage:   "OBJECT",
		Description: described("bpf"),
		Flags: append([]cli.Flag{
			&cli.StringSliceFlag{Name: "kernel", Usage: "the `KERNEL`: a dump, an image, or a release in words as kprobelab kernels has them (several: a column each)"},
			&cli.BoolFlag{Name: "offline", Usage: "fetch nothing, and say what is missing"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Destination: &o.Verbose, Usage: "print the verifier's log of each program"},
			&cli.StringSliceFlag{Name: "btf", Usage: "relocate against the types of `[KERNEL=]FILE`, BTF or an ELF file with it, not the kernel's own (repeatable)"},
			&cli.StringFlag{Name: "contract", Usage: "complete the object as `FILE` says, JSON or YAML: sizes of maps, constants, inner maps, to what programs are attached"},
			&cli.StringFlag{Name: "run", Destination: &o.Command, Usage: "then attach all programs at once, run this line of the guest's shell, `COMMAND`, or a workload of exec's by name, and print records, maps and bpf_printk"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON object, with the logs"},
			&cli.StringFlag{Name: "junit", Destination: &junit, Usage: "write the answers to `FILE` as JUnit XML, for CI"},
			shardFlag(&part, "the kernels"),
			&cli.StringFlag{Name: "bisect", Usage: "find the kernel with which the verdict on `PROGRAM` changed, between two of --kernel, or of all that can be had"},
		}, lossFlags(o.Asked)...),
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.NArg() != 1 {
				return usagef("one OBJECT is wanted; try %s --help", c.FullName())
			}
			if err := o.Check(); err != nil {
				return usagef("%w", err)
			}
			if c.IsSet("bisect") {
				return bpfBisect(ctx, t, c, o)
			}
			return bpfTable(ctx, t, c, o, junit, part)
		},
	}
}

// askKernels loads an object on booted kernels; the table is nil if none was asked.
func (t *term) askKernels(ctx context.Context, c *cli.Command, file string, list []string, o *bpf.Options) (*bpf.Table, error) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.SetFiles(c.StringSlice("btf"), c.String("contract")); err != nil {
		return nil, fail(exitImage, err)
	}
	o.Progress = t.Counter("bpf", "kernels")
	o.ModuleFiles = kernels.Modules(func() (*kernels.Store, error) { return t.store(c) })
	table, err := bpf.AskFile(ctx, file, list, func(ctx context.Context, kernel string) (string, error) { return t.bootedKernel(ctx, c, kernel) }, o)
	t.ProgressDone()
	if table == nil {
		err = fail(exitImage, err)
	}
	return table, err
}

// bpfTable asks the kernels side by side.
func bpfTable(ctx context.Context, t *term, c *cli.Command, o *bpf.Options, junit string, part shard.Part) error {
	o.Workload = run.Workload(o.Command)
	list := c.StringSlice("kernel")
	if len(list) == 0 {
		list = []string{""}
	}
	form := bpf.Form{Object: c.Args().First(), JSON: c.Bool("json"), Verbose: o.Verbose}
	out, err := t.shard(part, list, "kernels", form)
	if err != nil {
		return err
	}
	list = shard.Of(part, list)
	table, err := t.askKernels(ctx, c, form.Object, list, o)
	switch {
	case table == nil, errors.Is(err, context.Canceled), err != nil && len(list) == 1 && out == nil:
		return err
	case out != nil:
		return cmp.Or(shard.All(out, table.Columns), err)
	}
	return ended(form.Show(t.Out, junit, table.Columns))
}

// bpfBisect boots few kernels of a line, and says with which of them the verdict on a program changed.
func bpfBisect(ctx context.Context, t *term, c *cli.Command, o *bpf.Options) error {
	s, err := t.store(c)
	if err != nil {
		return fail(exitImage, err)
	}
	releases, err := s.Line(ctx, c.StringSlice("kernel"))
	if err != nil {
		return fail(exitImage, fmt.Errorf("--bisect: %w", err))
	}
	change, err := bpf.Bisect(ctx, c.String("bisect"), releases, func(ctx context.Context, release string) (*bpf.Table, error) {
		return t.askKernels(ctx, c, c.Args().First(), []string{release}, o)
	}, s.VersionOf, func(text string) { t.Sayf("%s", text) })
	if err != nil {
		return fail(bisect.Code(err), err)
	}
	return change.Show(t.Out, c.Bool("json"))
}
