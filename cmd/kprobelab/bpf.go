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
	"kprobelab/internal/bounded"
)

func bpfCommand(t *term) *cli.Command {
	o := &bpf.Options{}
	return &cli.Command{
		Name:        "bpf",
		Usage:       "load the programs of a BPF object by booted kernels' own verifiers",
		ArgsUsage:   "OBJECT",
		Description: described("bpf"),
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "kernel", Usage: "the `KERNEL`: a dump, an image, or a release in words as kprobelab kernels has them (several: a column each)"},
			&cli.BoolFlag{Name: "offline", Usage: "fetch nothing, and say what is missing"},
			&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Destination: &o.Verbose, Usage: "print the verifier's log of each program"},
			&cli.StringSliceFlag{Name: "btf", Usage: "relocate against the types of `[KERNEL=]FILE`, BTF or an ELF file with it, not the kernel's own (repeatable)"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON object, with the logs"},
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			if c.NArg() != 1 {
				return usagef("one OBJECT is wanted; try %s --help", c.FullName())
			}
			return bpfTable(ctx, t, c, c.Args().First(), o)
		},
	}
}

// askKernels loads an object on booted kernels; the table is nil if none was asked.
func (t *term) askKernels(ctx context.Context, c *cli.Command, file string, list []string, o *bpf.Options) (*bpf.Table, error) {
	object, err := bounded.ReadFile(file, bounded.BPFObject)
	if err != nil {
		return nil, err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	o.Progress = t.Counter("bpf", "kernels")
	table, err := bpf.Ask(ctx, file, object, list, func(ctx context.Context, kernel string) (string, error) { return t.bootedKernel(ctx, c, kernel) }, o)
	t.ProgressDone()
	if errors.Is(err, bpf.ErrObject) {
		err = fmt.Errorf("%s: %w", file, err)
	}
	if table == nil {
		err = fail(exitImage, err)
	}
	return table, err
}

// bpfTable asks the kernels side by side.
func bpfTable(ctx context.Context, t *term, c *cli.Command, file string, o *bpf.Options) error {
	for _, text := range c.StringSlice("btf") {
		if err := o.AddTypes(text); err != nil {
			return fail(exitImage, err)
		}
	}
	list := c.StringSlice("kernel")
	if len(list) == 0 {
		list = []string{""}
	}
	table, err := t.askKernels(ctx, c, file, list, o)
	switch {
	case table == nil, err != nil && len(list) == 1:
		return err
	case err != nil:
		err = fail(exitImage, errors.New("not all kernels could be asked"))
	default:
		err = ended(table.Code(), nil)
	}
	if c.Bool("json") {
		return cmp.Or(table.JSON(t.Out), err)
	}
	return cmp.Or(table.Text(t.Out, o.Verbose), err)
}
