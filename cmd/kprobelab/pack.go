package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"time"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/archive"
	"kprobelab/internal/printable"
)

func packCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:        "pack",
		Usage:       "keep what check asks of kernels in small files, for check --archive",
		ArgsUsage:   "IMAGE... (with --list, RELEASE...)",
		Description: described("pack"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "write the files into the folder `DIR`"},
			&cli.BoolFlag{Name: "entries", Usage: "only what probes at functions' entries without arguments ask for: a quarter of the size"},
			&cli.StringFlag{Name: packageFlag, Usage: "pack the modules below `DIR` that were made for the kernel, as its package's"},
			&cli.BoolFlag{Name: "keep", Usage: "leave out an image whose file is there"},
			&cli.BoolFlag{Name: "list", Usage: "print which kernels the folder has"},
			&cli.BoolFlag{Name: "shrink", Usage: "write the folder's files as differences from each other"},
			&cli.BoolFlag{Name: "whole", Usage: "write the folder's files so that each needs no other"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON object for each image: its file, which kernel it is, sizes"},
			decoderFlag("x86asm"),
		}, imageFlags()...),
		Action: func(_ context.Context, c *cli.Command) error { return t.differences(pack(t, c)) },
	}
}

// packageFlag names a folder of modules.
const packageFlag = "package"

func pack(t *term, c *cli.Command) error {
	dir := c.String("output")
	rewrite, name := packRewrite(c)
	switch {
	case rewrite != nil && (c.Args().Present() || c.Bool("list") || c.Bool("shrink") && c.Bool("whole")):
		return usagef("--%s is for the files of the folder: it goes with -o and nothing else", name)
	case len(operands(c)) == 0 && !c.Bool("list") && rewrite == nil:
		return usagef("pack takes at least one image; try %s --help", c.FullName())
	case dir == "":
		return usagef("pack needs -o DIR, the folder of the files")
	case c.Bool("list"):
		return packList(t, c, dir)
	case rewrite != nil:
		return rewritten(t, c, rewrite, dir)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for _, path := range operands(c) {
		if err := packOne(t, c, path, dir); err != nil {
			return err
		}
	}
	return nil
}

// packList prints what the folder has. The first file that cannot be read is named, and
// the others are printed.
func packList(t *term, c *cli.Command, dir string) error {
	files, err := packedFiles(dir, c.Args().Slice())
	if err != nil {
		return err
	}
	unread, err := archive.EachLine(files, func(l archive.Line) error { return t.packed(c, l) })
	if err == nil && unread != nil {
		err = fail(exitImage, unread)
	}
	return err
}

// packRewrite returns the function that rewrites existing files as --shrink or --whole asks, and the flag's name. It
// returns nil without these flags.
func packRewrite(c *cli.Command) (func(dir string, done func(archive.Rewritten) error) error, string) {
	switch {
	case c.Bool("shrink"):
		return archive.Shrink, "shrink"
	case c.Bool("whole"):
		return archive.Whole, "whole"
	}
	return nil, ""
}

// rewritten prints each file that was written anew.
func rewritten(t *term, c *cli.Command, rewrite func(string, func(archive.Rewritten) error) error, dir string) error {
	n := 0
	err := rewrite(dir, func(r archive.Rewritten) error {
		n++
		return t.packed(c, r.Line())
	})
	if errors.Is(err, archive.ErrNone) {
		return fail(exitImage, err)
	}
	if err == nil && n == 0 {
		fmt.Fprintf(t.Err, "%s: no file had to be written anew\n", printable.Name(dir))
	}
	return err
}

// packedFiles are the files of an archive whose releases match a pattern; all, where
// there are no patterns.
func packedFiles(dir string, releases []string) ([]string, error) {
	files, err := archive.List(dir, releases...)
	switch {
	case errors.Is(err, path.ErrBadPattern):
		return nil, usagef("not a pattern of releases: %w", err)
	case errors.Is(err, archive.ErrNone):
		return nil, fail(exitImage, err)
	}
	return files, err
}

func packOne(t *term, c *cli.Command, path, dir string) error {
	start := time.Now()
	img, err := openImage(t, c, path)
	if err != nil {
		return err
	}
	o := &archive.Options{Entries: c.Bool("entries"), Progress: t.Counter("answer", "points")}
	if c.Bool("keep") {
		if file, ok := archive.Kept(img, o, dir); ok {
			return t.packed(c, archive.Line{Image: img.Name(), File: file, Kept: true})
		}
	}
	l, err := archive.PackInto(img, o, path, dir)
	t.ProgressDone()
	switch {
	case errors.Is(err, archive.ErrNoKernel):
		return fail(exitImage, err)
	case err != nil:
		return err
	}
	l.Seconds = time.Since(start).Seconds()
	return t.packed(c, l)
}

func (t *term) packed(c *cli.Command, l archive.Line) error {
	if c.Bool("json") {
		return json.NewEncoder(t.Out).Encode(l)
	}
	_, err := fmt.Fprintln(t.Out, l)
	return err
}
