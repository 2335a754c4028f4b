package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/printable"
	"kprobelab/internal/printk"
	"kprobelab/internal/report"
	"kprobelab/kimage"
)

func infoCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:        "info",
		Usage:       "tell what an image is: its facts with their evidence, tables and sections",
		ArgsUsage:   "[IMAGE]",
		Description: described("info"),
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "one JSON object"},
			&cli.BoolFlag{Name: "tasks", Usage: "of a memory dump, list the tasks instead"},
			&cli.BoolFlag{Name: "dmesg", Usage: "of a memory dump, print the kernel's log instead"},
		}, imageFlags()...),
		Action: upTo(1, func(_ context.Context, c *cli.Command) error { return info(t, c) }),
	}
}

func info(t *term, c *cli.Command) error {
	if c.Bool("dmesg") && (c.Bool("tasks") || c.Bool("json")) {
		return usagef("--dmesg goes with neither --tasks nor --json")
	}
	img, err := openAnyImage(t, c, operand(c, 0))
	if err != nil {
		return err
	}
	if c.Bool("tasks") && img.Core() == nil {
		return usagef("%s is no memory dump: it has no tasks", img.Name())
	}
	if c.Bool("dmesg") {
		return dmesg(t, img)
	}
	r := report.DescribeImage(img)
	switch {
	case c.Bool("json"):
		return r.WriteJSON(t.Out)
	case c.Bool("tasks"):
		if _, err := img.TasksIn(img.ReadKernel); errors.Is(err, kimage.ErrTasks) {
			return fail(exitImage, fmt.Errorf("%s: %w", img.Name(), err))
		}
		return r.WriteTasks(t.Out)
	}
	return r.WriteText(t.Out)
}

// dmesg prints the log of a dump's kernel.
func dmesg(t *term, img *kimage.Image) error {
	if img.Core() == nil {
		return usagef("%s is no memory dump: it has no log", img.Name())
	}
	log, err := printk.Of(img, img.ReadKernel)
	if err != nil {
		return fail(exitImage, fmt.Errorf("--dmesg: %w", err))
	}
	list, err := log.Since(0)
	for _, r := range list {
		fmt.Fprintln(t.Out, printable.Name(r.String()))
	}
	if err != nil {
		return fail(exitImage, fmt.Errorf("--dmesg: %w", err))
	}
	return nil
}

func errNoSymbol(image, pattern string) error {
	return fmt.Errorf("no symbol of %s matches %q", image, pattern)
}
