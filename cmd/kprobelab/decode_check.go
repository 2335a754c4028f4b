package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/decoder/compare"
	"kprobelab/internal/outfile"
	"kprobelab/kimage"
)

var withHelp = "any of " + strings.Join(compare.Names, ", ") + ", or kernel:RELEASE; without it, those of the first three " +
	"that are on the machine (make deps-test fetches them)"

func compareFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "with", Usage: "compare with `LIST`: " + withHelp},
		&cli.StringSliceFlag{Name: "cmd", Usage: "compare with `'PROGRAM ARGS'`, which speaks the line protocol: hex in; length, class, target, text out (repeatable)"},
		&cli.StringFlag{Name: "base", Usage: "the old version of the one that --cmd or --with names is `'PROGRAM ARGS'`: say what is better, worse, other"},
		&cli.BoolFlag{Name: "text", Usage: "the decoders of --with say mnemonic and operands, too; they are compared in a normal form"},
		&cli.BoolFlag{Name: "strict", Usage: "differences with a known cause are listed like the others"},
	}
}

func decodeCheckCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:        "check",
		Usage:       "compare decoders over the code of an ELF file or a kernel image",
		ArgsUsage:   "FILE",
		Description: described("decode check"),
		Flags:       compareFlags(),
		Action:      func(_ context.Context, c *cli.Command) error { return decodeCheck(t, c) },
	}
}

func decodeFuzzCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:        "fuzz",
		Usage:       "compare decoders over generated encodings",
		ArgsUsage:   " ",
		Description: described("decode fuzz"),
		Flags: append([]cli.Flag{
			&cli.Uint64Flag{Name: "seed", Usage: "`N` picks the sequence", Value: 1},
			&cli.IntFlag{Name: "count", Usage: "how many encodings, `N`", Value: 1_000_000},
			&cli.BoolFlag{Name: "enumerated", Usage: "3.6 million strings in place of generated ones: each opcode of each map with its prefixes, W, pp and forms of ModRM"},
			&cli.StringFlag{Name: "append", Usage: "append shrunk differences without a cause to `FILE`, a row each as in decoder/compare/testdata/corpus"},
		}, compareFlags()...),
		Action: upTo(0, func(_ context.Context, c *cli.Command) error { return decodeFuzz(t, c) }),
	}
}

// openDecoders starts the decoders that the flags name.
func openDecoders(c *cli.Command) ([]compare.Decoder, error) {
	names := strings.FieldsFunc(c.String("with"), func(r rune) bool { return r == ',' || r == ' ' })
	if c.IsSet("with") && len(names) == 0 {
		return nil, usagef("--with names no decoder: there are %s, kernel:RELEASE", strings.Join(compare.Names, ", "))
	}
	for _, line := range c.StringSlice("cmd") {
		if strings.TrimSpace(line) == "" {
			return nil, usagef("--cmd wants a program")
		}
	}
	list, err := compare.OpenAll(names, c.StringSlice("cmd"), c.Bool("text"))
	switch {
	case errors.Is(err, compare.ErrNone):
		return nil, fail(exitImage, fmt.Errorf("%w; make deps-test fetches some, --with x86asm takes the one in the program", err))
	case errors.Is(err, compare.ErrName):
		return nil, usagef("%w", err)
	case err != nil:
		return nil, fail(exitImage, err)
	}
	return list, nil
}

// openComparing starts the decoders that the flags name: with --base, two versions of one.
func openComparing(c *cli.Command) (compare.Comparing, error) {
	if !c.IsSet("base") {
		others, err := openDecoders(c)
		return &compare.Among{Others: others}, err
	}
	if !c.IsSet("cmd") && !c.IsSet("with") {
		return nil, usagef("--base is the old version: --cmd or --with has to name the new one")
	}
	list, err := openDecoders(c)
	if err != nil {
		return nil, err
	}
	if len(list) != 1 {
		return nil, usagef("--base is compared with one decoder, not with %d", len(list))
	}
	if strings.TrimSpace(c.String("base")) == "" {
		return nil, usagef("--base wants a program")
	}
	old, err := compare.StartCommand(c.String("base"))
	if err != nil {
		return nil, fail(exitImage, err)
	}
	return &compare.Versions{Old: old, New: list[0]}, nil
}

// codeOf are the executable sections of an ELF file, or the text of a kernel
// image.
func codeOf(t *term, path string) ([]kimage.Segment, error) {
	list, err := kimage.CodeOf(path, t.Progress)
	t.ProgressDone()
	if err != nil {
		return nil, fail(exitImage, err)
	}
	return list, nil
}

func decodeCheck(t *term, c *cli.Command) (err error) {
	if c.Args().Len() != 1 {
		return usagef("decode check wants one file; try kprobelab decode check --help")
	}
	sections, err := codeOf(t, c.Args().First())
	if err != nil {
		return err
	}
	seen := map[string]bool{}
	return t.compareDecoders(c, false, func(cmp compare.Comparing) error {
		for _, s := range sections {
			if err := cmp.Walk(s.Data, uint64(s.Addr), seen, t.Counter("check", "bytes")); err != nil {
				return err
			}
		}
		return nil
	})
}

func decodeFuzz(t *term, c *cli.Command) (err error) {
	if c.Int("count") < 0 {
		return usagef("--count: %d is no number of encodings", c.Int("count"))
	}
	if c.Bool("enumerated") && (c.IsSet("seed") || c.IsSet("count")) {
		return usagef("--enumerated asks a fixed list; --seed and --count are for generated encodings")
	}
	var cover *compare.Coverage
	progress := t.Counter("fuzz", "encodings")
	err = t.compareDecoders(c, true, func(cmp compare.Comparing) (err error) {
		if c.Bool("enumerated") {
			cover, err = cmp.FuzzEnumerated(progress)
		} else {
			cover, err = cmp.Fuzz(c.Uint64("seed"), c.Int("count"), progress)
		}
		return err
	})
	if cover != nil && exitCode(err) <= exitRefused {
		fmt.Fprintln(t.Out, cover.Missing())
	}
	return err
}

// compareDecoders asks the decoders that the flags name, and prints what was found. What is wrong with a decoder comes before
// what the comparison has found, and after what was wrong with one already.
func (t *term) compareDecoders(c *cli.Command, shrink bool, ask func(compare.Comparing) error) (err error) {
	cmp, err := openComparing(c)
	if err != nil {
		return err
	}
	defer func() {
		if wrong := cmp.Close(); wrong != nil && exitCode(err) <= exitRefused {
			err = fail(exitImage, wrong)
		}
	}()
	if err := ask(cmp); err != nil {
		return fail(exitImage, err)
	}
	t.ProgressDone()
	out := bufio.NewWriter(t.Out)
	defer out.Flush()
	o := &compare.ReportOptions{Bold: t.OutStyle.Bold, Strict: c.Bool("strict"), Shrink: shrink}
	if path := c.String("append"); path != "" {
		o.Append = func(d *compare.Difference) error { return outfile.Append(path, d.Row()) }
	}
	var differs *compare.DiffersError
	switch err := cmp.Verdict(out, o); {
	case errors.As(err, &differs):
		return fail(exitRefused, err)
	case err != nil:
		return fail(exitImage, err)
	}
	return nil
}
