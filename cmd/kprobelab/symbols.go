package main

import (
	"cmp"
	"context"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/cmdline"
	"kprobelab/internal/report"
)

func symbolsCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:        "symbols",
		Usage:       "list an image's symbols as /proc/kallsyms does",
		ArgsUsage:   "[IMAGE [GLOB]]",
		Description: described("symbols"),
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "json", Usage: "one JSON object a line: addr, size, type, name, module"},
			&cli.BoolFlag{Name: "tsv", Usage: "tab-separated, with a header: addr, size, type, name, module"},
		}, imageFlags()...),
		Action: func(_ context.Context, c *cli.Command) error { return symbols(t, c) },
	}
}

func symbols(t *term, c *cli.Command) error {
	if err := cmp.Or(cmdline.OneOf(c, "json", "tsv"), atMost(c, 2)); err != nil {
		return err
	}
	pattern := operand(c, 1)
	if err := checkPatterns(pattern); err != nil {
		return err
	}
	img, err := openImage(t, c, operand(c, 0))
	if err != nil {
		return err
	}
	list, err := report.Symbols(img, pattern)
	if err != nil {
		return err
	}
	if err := cmdline.Form(c, report.WriteSymbols, report.WriteSymbolsJSON, report.WriteSymbolsTSV)(t.Out, list); err != nil {
		return err
	}
	if len(list) == 0 && pattern != "" {
		return fail(exitRefused, errNoSymbol(img.Name(), pattern))
	}
	return nil
}
