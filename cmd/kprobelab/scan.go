package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/internal/cmdline"
	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/shard"
)

func scanCommand(t *term) *cli.Command {
	var part shard.Part
	return &cli.Command{
		Name:        "scan",
		Usage:       "ask of every instruction, or of listed points, what registering a kprobe would answer and whether it is optimized",
		ArgsUsage:   "[IMAGE [SYM-GLOB...]]",
		Description: described("scan"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "points", Usage: "ask of the points in `FILE`, plain or gzip; - is standard input"},
			&cli.BoolFlag{Name: "entries", Usage: "only the functions' entries"},
			&cli.BoolFlag{Name: "padding", Usage: "list int3 padding too, which is only counted otherwise"},
			&cli.BoolFlag{Name: "detail", Usage: "add detail, the reason in words"},
			&cli.BoolFlag{Name: "slots", Usage: "add slot_addr and slot, the bytes out of line; a column slot_addr of --points says where"},
			&cli.BoolFlag{Name: "own", Usage: "let the image's own functions decide where they can, some milliseconds a point; a column own names what they decided"},
			&cli.BoolFlag{Name: "diff", Usage: "say what changed between two kernels, OLD NEW: images, dumps, or files that scan --json has written"},
			&cli.BoolFlag{Name: "all", Usage: "with --diff: list every change after the summary"},
			shardFlag(&part, "the code"),
			decoderFlag("tables"),
			&cli.BoolFlag{Name: "bare", Usage: "with --decoder x86asm: list the answers that x86asm gets wrong where nothing corrects it"},
			&cli.BoolFlag{Name: "tsv", Usage: "a header, and a line for each point: address, symbol, offset, errno, ftrace, boostable, emulated, optimized, reason"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON object for each point, with the same names"},
		}, imageFlags()...),
		Action: func(_ context.Context, c *cli.Command) error { return t.differences(scan(t, c, part)) },
	}
}

func scan(t *term, c *cli.Command, part shard.Part) error {
	if err := cmp.Or(cmdline.OneOf(c, "diff", "bare"), cmdline.OneOf(c, "tsv", "json"), cmdline.OneOf(c, "entries", "padding"), bareAlone(c)); err != nil {
		return err
	}
	if c.Bool("diff") {
		return scanDiff(t, c)
	}
	globs, err := scanGlobs(c)
	if err != nil {
		return err
	}
	var points []report.ScanPoint
	if c.IsSet("points") { // a file that is not there need not wait for the image
		if points, err = readPoints(c.String("points")); err != nil {
			return err
		}
	}
	img, err := openImage(t, c, operand(c, 0))
	if err != nil {
		return err
	}
	s := report.NewScan(img)
	s.Padding, s.Slots, s.Detail = c.Bool("padding"), c.Bool("slots"), c.Bool("detail")
	s.Bare = c.Bool("bare")
	rest := func() []string { return nil }
	if c.Bool("own") {
		decide, done, left, err := ownDecider(img)
		if err != nil {
			return err
		}
		defer done()
		s.Own, rest = decide, left
	}
	s.Progress = t.Counter("scan", "points")
	write := func(f report.ScanFormat) (*report.ScanTotals, error) {
		return s.WritePoints(t.Out, f, points)
	}
	if !c.IsSet("points") {
		functions, err := s.Functions(globs...)
		if err != nil {
			return fail(exitRefused, fmt.Errorf("%s: %w", img.Name(), err))
		}
		all := s.WriteFunctions
		if c.Bool("entries") {
			all = s.WriteEntries
		}
		write = func(f report.ScanFormat) (*report.ScanTotals, error) { return all(t.Out, f, functions) }
	}
	if part.Whole() {
		return t.showScan(heading(c, img), scanFormat(c), s, rest, write)
	}
	s.Shard = &report.ScanShard{Part: part, Rest: rest, Begin: func(chunks []string) (*shard.Writer, error) {
		return t.shard(part, chunks, "pieces of code", s.Form(heading(c, img), scanFormat(c)))
	}}
	_, err = write(scanFormat(c))
	t.ProgressDone()
	return err
}

// bareAlone refuses what does not go with --bare.
func bareAlone(c *cli.Command) error {
	if !c.Bool("bare") {
		return nil
	}
	if c.String("decoder") != "x86asm" {
		return usagef("--bare is about x86asm: give --decoder x86asm, too")
	}
	return cmdline.OneOf(c, "bare", "points", "entries", "padding", "diff", "own")
}

// scanGlobs are the patterns after the image, which a list of points takes
// the place of.
func scanGlobs(c *cli.Command) ([]string, error) {
	var globs []string
	if args := operands(c); len(args) > 1 {
		globs = args[1:]
	}
	if !c.IsSet("points") {
		return globs, checkPatterns(globs...)
	}
	if len(globs) > 0 {
		return nil, usagef("--points and a pattern exclude each other")
	}
	return nil, cmdline.OneOf(c, "points", "entries", "padding")
}

func readPoints(name string) (points []report.ScanPoint, err error) {
	err = readList(name, "--points "+name, func(r io.Reader) error {
		points, err = report.ReadPoints(r)
		return err
	})
	return points, err
}

// readList reads a file, or what comes in for "-"; what names it in an error
// of its content.
func readList(name, what string, read func(io.Reader) error) error {
	f := os.Stdin
	if name != "-" {
		var err error
		if f, err = bounded.Open(name); err != nil {
			return err
		}
		defer f.Close()
	}
	if err := read(f); err != nil {
		return fail(exitImage, fmt.Errorf("%s: %w", what, err))
	}
	return nil
}

// checkPatterns refuses a malformed pattern of symbols before an image is read.
func checkPatterns(patterns ...string) error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return usagef("%q is not a pattern: %w", p, err)
		}
	}
	return nil
}

func scanFormat(c *cli.Command) report.ScanFormat {
	switch {
	case c.Bool("tsv"):
		return report.ScanTSV
	case c.Bool("json"):
		return report.ScanJSON
	}
	return report.ScanNone
}

// showScan writes the heading and the rows or the totals.
func (t *term) showScan(head string, f report.ScanFormat, s *report.Scan, rest func() []string, write func(report.ScanFormat) (*report.ScanTotals, error)) error {
	return s.Show(&report.ScanOutput{Out: t.Out, Err: t.Err, Done: t.ProgressDone}, head, f, rest, write)
}

// heading says whose rules answer and on which text.
func heading(c *cli.Command, img *kimage.Image) string {
	return report.Heading(img, c.String("live-text"))
}

// diffFlags go with --diff: the others say how one scan is made.
var diffFlags = []string{"diff", "json", "all", "cpu", "padding"}

// scanDiff compares two kernels: images, dumps, or what scan --json has written of them.
func scanDiff(t *term, c *cli.Command) error {
	for _, name := range c.FlagNames() {
		if !slices.Contains(diffFlags, name) {
			return usagef("--diff compares two kernels as a whole; --%s goes with a scan of one, whose --json is a file for --diff", name)
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
