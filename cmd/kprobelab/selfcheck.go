package main

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/internal/cmdline"
	"kprobelab/internal/report"
	"kprobelab/internal/selfcheck"
	"kprobelab/kimage"
	"kprobelab/run"
	"kprobelab/shard"
	"kprobelab/x86"
)

const defaultPoints = 1000

func selfcheckCommand(t *term) *cli.Command {
	var timeout time.Duration
	var part shard.Part
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
			shardFlag(&part, "the points"), timeoutFlag(&timeout),
			&cli.BoolFlag{Name: "json", Usage: "one JSON object for each question"},
		}, imageFlags()...),
		Action: func(_ context.Context, c *cli.Command) error {
			if err := cmp.Or(atMost(c, 1), cmdline.OneOf(c, "points", "all", "boundaries", "insides"), cmdline.OneOf(c, "all", "boundaries", "insides")); err != nil {
				return err
			}
			for _, way := range []string{"points", "boundaries", "insides"} {
				if n := c.Int(way); c.IsSet(way) && (n < 1 || n > bounded.CheckPoints) {
					return usagef("--%s %d: there can be 1 to %d", way, n, bounded.CheckPoints)
				}
			}
			if err := cmdline.NotNegative(timeout); err != nil {
				return err
			}
			return runSelfcheck(t, c, timeout, part)
		},
	}
}

func runSelfcheck(t *term, c *cli.Command, timeout time.Duration, part shard.Part) error {
	img, err := openImage(t, c, operand(c, 0))
	if err != nil {
		return err
	}
	points := drawPoints(c, img)
	if len(points) == 0 {
		return fail(exitImage, fmt.Errorf("%s: there is no function in its text to draw points from", img.Name()))
	}
	form := selfcheck.Form{Name: img.Name(), Heading: heading(c, img), JSON: c.Bool("json")}
	out, err := t.shard(part, selfcheck.Items(points), "pieces", form)
	if err != nil {
		return err
	}
	defer t.ProgressDone()
	if out != nil {
		return selfcheck.CheckShard(out, part, img, points, timeout, t.Counter("selfcheck", "points"))
	}
	form.Begin(t.Out, t.Err)
	r, err := selfcheck.Check(img, points, timeout, t.Counter("selfcheck", "points"))
	if err != nil {
		return run.MachineError(img, err)
	}
	t.ProgressDone()
	return ended(form.Show(t.Out, r))
}

// drawPoints draws what the flags say.
func drawPoints(c *cli.Command, img *kimage.Image) []x86.Addr {
	seed := c.Uint64("seed")
	switch {
	case c.Bool("all"):
		return selfcheck.All(img)
	case c.IsSet("boundaries") || c.IsSet("insides"):
		return append(selfcheck.Boundaries(img, c.Int("boundaries"), seed), selfcheck.Insides(img, c.Int("insides"), seed)...)
	}
	return selfcheck.Draw(img, c.Int("points"), seed)
}

// ownDecider asks the image's own functions in place of the rules; done ends their
// machines, left says what the rules decide all the same.
func ownDecider(img *kimage.Image) (decide func(x86.Addr, bool) report.Own, done func(), left func() []string, err error) {
	d, err := selfcheck.NewDecider(img)
	if err != nil {
		return nil, nil, nil, run.MachineError(img, err)
	}
	return d.At, d.Close, d.Rest, nil
}
