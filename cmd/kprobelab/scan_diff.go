package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/report"
)

// diffFlags go with --diff: the others say how one scan is made.
var diffFlags = []string{"diff", "json", "all", "cpu", "padding"}

// scanDiff compares two kernels: images, dumps, or what scan --json has written of them.
func scanDiff(t *term, c *cli.Command) error {
	for _, name := range c.FlagNames() {
		if !slices.Contains(diffFlags, name) {
			return usagef("--diff compares two kernels as a whole; --%s goes with a scan of one", name)
		}
	}
	if c.Args().Len() != 2 {
		return usagef("--diff takes two kernels, OLD and NEW: images, dumps, or files that scan --json has written")
	}
	var files [2]*report.ScanFile
	for i := range files {
		var err error
		if files[i], err = scanOf(t, c, c.Args().Get(i)); err != nil {
			return err
		}
	}
	changes := report.CompareScans(files[0], files[1])
	if c.Bool("json") {
		return changes.WriteJSON(t.Out)
	}
	return changes.WriteText(t.Out, c.Bool("all"))
}

// scanOf is a scan that a file has, or that is made of an image.
func scanOf(t *term, c *cli.Command, name string) (*report.ScanFile, error) {
	written, err := report.IsScan(name)
	if err != nil {
		return nil, err
	}
	if written {
		f, err := report.OpenScan(name)
		if p := (*fs.PathError)(nil); err != nil && !errors.As(err, &p) {
			err = fail(exitImage, fmt.Errorf("--diff: %w", err))
		}
		return f, err
	}
	img, err := openImage(t, c, name)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(t.Err, heading(c, img))
	s := report.NewScan(img)
	s.Padding = c.Bool("padding")
	s.Progress = t.Counter("scan", "points")
	f, err := report.ScanWhole(s)
	t.ProgressDone()
	return f, err
}
