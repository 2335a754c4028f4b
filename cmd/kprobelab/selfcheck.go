package main

import (
	"context"
	"time"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/internal/cmdline"
)

const defaultPoints = 1000

func selfcheckCommand(t *term) *cli.Command {
	var timeout time.Duration
	return &cli.Command{
		Name:        "selfcheck",
		Usage:       "compare the rules with the image's own functions, at drawn points",
		ArgsUsage:   "[IMAGE]",
		Description: described("selfcheck"),
		Flags: append([]cli.Flag{
			&cli.IntFlag{Name: "points", Value: defaultPoints, Usage: "draw this `NUMBER` of points"},
			&cli.IntFlag{Name: "boundaries", Usage: "draw this `NUMBER` of instructions instead"},
			&cli.IntFlag{Name: "insides", Usage: "draw this `NUMBER` of addresses inside instructions instead"},
			&cli.BoolFlag{Name: "all", Usage: "every instruction of the text instead: takes hours"},
			&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "`SEED` of what is drawn"},
			timeoutFlag(&timeout),
			&cli.BoolFlag{Name: "json", Usage: "one JSON object for each question"},
		}, imageFlags()...),
		Action: func(_ context.Context, c *cli.Command) error {
			if err := atMost(c, 1); err != nil {
				return err
			}
			for _, ways := range [][2]string{{"points", "all"}, {"points", "boundaries"}, {"points", "insides"}, {"all", "boundaries"}, {"all", "insides"}} {
				if err := cmdline.OneOf(c, ways[0], ways[1]); err != nil {
					return err
				}
			}
			for _, way := range []string{"points", "boundaries", "insides"} {
				if n := c.Int(way); c.IsSet(way) && (n < 1 || n > bounded.CheckPoints) {
					return usagef("--%s %d: there can be 1 to %d", way, n, bounded.CheckPoints)
				}
			}
			if err := cmdline.NotNegative(timeout); err != nil {
				return err
			}
			return runSelfcheck(t, c, timeout)
		},
	}
}
