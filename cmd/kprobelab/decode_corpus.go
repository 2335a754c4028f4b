package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
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
	var line []byte
	visit := func(e *compare.Entry) error {
		if c.Bool("json") {
			line = e.AppendJSON(line[:0])
		} else {
			line = e.AppendTSV(line[:0])
		}
		_, err := out.Write(line)
		return err
	}
	if c.Bool("shipped") {
		if err := atMost(c, 0); err != nil {
			return err
		}
		if !c.Bool("json") {
			fmt.Fprintf(out, "# %s\n", strings.ReplaceAll(compare.ShippedNotice, "\n", "\n# "))
		} else {
			fmt.Fprintf(out, "{\"notice\":%q}\n", strings.ReplaceAll(compare.ShippedNotice, "\n", " "))
		}
	}
	if !c.Bool("json") {
		out.WriteString(compare.EntryColumns)
	}
	seen := map[string]bool{}
	path := c.Args().First()
	switch {
	case c.Bool("shipped"):
		return compare.Shipped(&p.Decoder, visit)
	case c.Bool("raw"):
		code, err := rawCode(path)
		if err != nil {
			return fail(exitImage, err)
		}
		return compare.Entries(code, &p.Decoder, seen, visit)
	case path == "-":
		err := compare.EntriesOfLines(os.Stdin, &p.Decoder, seen, visit)
		if err != nil {
			return fail(exitImage, err)
		}
		return nil
	}
	sections, err := codeOf(t, path)
	if err != nil {
		return err
	}
	for _, s := range sections {
		if err := compare.Entries(s.Data, &p.Decoder, seen, visit); err != nil {
			return err
		}
	}
	return nil
}

func rawCode(path string) ([]byte, error) {
	if path == "-" {
		return bounded.ReadAll(os.Stdin, bounded.RawCode)
	}
	return bounded.ReadFile(path, bounded.RawCode)
}
