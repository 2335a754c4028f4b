package main

import (
	"context"
	"fmt"

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
	if err := cmdline.OneOf(c, "json", "tsv"); err != nil {
		return err
	}
	if err := atMost(c, 1); err != nil {
		return err
	}
	if len(operands(c)) == 0 {
		for _, f := range imageFlags() {
			if name := f.Names()[0]; c.IsSet(name) {
				return usagef("--%s goes with an IMAGE; - is the guest kernel", name)
			}
		}
		return hazardTable(t, c)
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
	switch {
	case err != nil:
		return err
	case c.Bool("json"):
		return report.WriteHazardsJSON(t.Out, list)
	case c.Bool("tsv"):
		return report.WriteHazardsTSV(t.Out, list)
	}
	return report.WriteHazards(t.Out, list, img.Profile())
}

func hazardTable(t *term, c *cli.Command) error {
	switch {
	case c.Bool("json"):
		return report.WriteHazardTableJSON(t.Out)
	case c.Bool("tsv"):
		return report.WriteHazardTableTSV(t.Out)
	}
	return report.WriteHazardTable(t.Out)
}
