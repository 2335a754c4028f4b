package main

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/decoder/compare"
	"kprobelab/internal/bounded"
	"kprobelab/profile"
)

func decodeCorpusCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:        "corpus",
		Usage:       "list all distinct encodings of a file, as both views read them",
		ArgsUsage:   "IMAGE|FILE|-",
		Description: described("decode corpus"),
		Flags: []cli.Flag{
			rulesOnly(),
			&cli.StringFlag{Name: "profile", Usage: "whose decoder the kernel's view is: `PROFILE` is one of " + strings.Join(profile.All(), ", "), Value: "6.1"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON object a line in place of tab-separated columns"},
			&cli.BoolFlag{Name: "raw", Usage: "the file is code and nothing else"},
			&cli.BoolFlag{Name: "shipped", Usage: "the corpus that comes with the program; its licence and how it grows stand at the top"},
		},
		Action: func(_ context.Context, c *cli.Command) error { return decodeCorpus(t, c) },
	}
}

func decodeCorpus(t *term, c *cli.Command) (err error) {
	if c.Args().Len() != 1 && !c.Bool("shipped") {
		return usagef("decode corpus wants one file, or - or --shipped; try kprobelab decode corpus --help")
	}
	p, err := profileOf(c, "")
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(t.Out, 1<<16)
	defer func() { err = errors.Join(err, out.Flush()) }()
	w := &compare.EntryWriter{W: out, JSON: c.Bool("json")}
	if c.Bool("shipped") {
		if err := atMost(c, 0); err != nil {
			return err
		}
	}
	if err := w.Head(c.Bool("shipped")); err != nil {
		return err
	}
	seen := map[string]bool{}
	path := c.Args().First()
	switch {
	case c.Bool("shipped"):
		return compare.Shipped(&p.Decoder, w.Write)
	case path == "-" && !c.Bool("raw"):
		if err := compare.EntriesOfLines(os.Stdin, &p.Decoder, seen, w.Write); err != nil {
			return fail(exitImage, err)
		}
		return nil
	case c.Bool("raw"):
		read := bounded.ReadFile
		if path == "-" {
			read = func(_ string, most int64) ([]byte, error) { return bounded.ReadAll(os.Stdin, most) }
		}
		code, err := read(path, bounded.RawCode)
		if err != nil {
			return fail(exitImage, err)
		}
		return compare.Entries(code, &p.Decoder, seen, w.Write)
	}
	sections, err := codeOf(t, path)
	if err != nil {
		return err
	}
	for _, s := range sections {
		if err := compare.Entries(s.Data, &p.Decoder, seen, w.Write); err != nil {
			return err
		}
	}
	return nil
}
