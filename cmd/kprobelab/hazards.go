package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/cmdline"
	"kprobelab/internal/report"
)

func hazardsCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:        "hazards",
		Usage:       "list the probes that a kernel accepts and that break it",
		ArgsUsage:   "[IMAGE]",
		Description: described("hazards"),
		Flags: append([]cli.Flag{
			&cli.BoolFlag{Name: "tsv", Usage: "tab-separated, with a header: address, symbol, offset, hazard, effect"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON object a line, with the consequence and the reproducer"},
			decoderFlag("x86asm"),
		}, imageFlags()...),
		Action: func(_ context.Context, c *cli.Command) error { return t.differences(hazards(t, c)) },
	}
}

func hazards(t *term, c *cli.Command) error {
	if err := cmp.Or(cmdline.OneOf(c, "json", "tsv"), atMost(c, 1)); err != nil {
		return err
	}
	if len(operands(c)) == 0 {
		for _, f := range imageFlags() {
			if name := f.Names()[0]; c.IsSet(name) {
				return usagef("--%s goes with an IMAGE; - is the guest kernel", name)
			}
		}
		return cmdline.Form(c, report.WriteHazardTable, report.WriteHazardTableJSON, report.WriteHazardTableTSV)(t.Out)
	}
	img, err := openImage(t, c, operand(c, 0))
	if err != nil {
		return err
	}
	to := t.Out
	if c.Bool("json") || c.Bool("tsv") {
		to = t.Err
	}
	fmt.Fprintln(to, heading(c, img))
	list, err := report.HazardPoints(img, t.Counter("hazards", "points"))
	t.ProgressDone()
	if err != nil {
		return err
	}
	text := func(w io.Writer, list []report.HazardPoint) error { return report.WriteHazards(w, list, img.Profile()) }
	return cmdline.Form(c, text, report.WriteHazardsJSON, report.WriteHazardsTSV)(t.Out, list)
}
