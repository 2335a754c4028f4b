package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/internal/cmdline"
	"kprobelab/internal/explore"
	"kprobelab/profile"
	"kprobelab/shard"
)

func exploreCommand(t *term) *cli.Command {
	var part shard.Part
	return &cli.Command{
		Name:        "explore",
		Usage:       "run a scenario in every order of its CPUs' steps",
		ArgsUsage:   "[SCENARIO]",
		Description: described("explore"),
		Flags: []cli.Flag{
			rulesOnly(),
			&cli.StringFlag{Name: "profile", Usage: "the `PROFILE` (default: " + profile.Default + "): " + strings.Join(profile.All(), ", ")},
			&cli.IntFlag{Name: "bound", Value: 2, Usage: "up to `N` switches away from a CPU that could go on; -1: any number"},
			&cli.StringSliceFlag{Name: "bug", Usage: "bring the bug of this `NUMBER` back (repeatable)"},
			&cli.BoolFlag{Name: "list", Usage: "list the program's own scenarios, and the bugs that can be brought back"},
			&cli.BoolFlag{Name: "all", Usage: "explore all of the program's own scenarios, and compare with the verdicts that they expect"},
			shardFlag(&part, "the scenarios of --all"),
			&cli.StringFlag{Name: "replay", Usage: "run the schedule in `FILE`"},
			&cli.StringFlag{Name: "out", Aliases: []string{"o"}, Usage: "write the schedule that ends badly to `FILE`"},
			&cli.StringFlag{Name: "svg", Usage: "draw that schedule, or the replayed one, as a picture in `FILE`"},
			&cli.StringFlag{Name: "perfetto", Usage: "write it as a trace for ui.perfetto.dev to `FILE`, a lane for each CPU; .jsonl: as JSON lines"},
			&cli.BoolFlag{Name: "page", Usage: "print a link with which the page shows it (kprobelab serve)"},
			&cli.IntFlag{Name: "walks", Usage: "make `N` runs by chance instead of all: random priorities, changed at random places (PCT)"},
			&cli.Uint64Flag{Name: "seed", Value: 1, Usage: "the `SEED` of --walks"},
			&cli.IntFlag{Name: "max-runs", Value: 5_000_000, Usage: "give up after `N` runs"},
			&cli.BoolFlag{Name: "json", Usage: "one JSON object with the verdict, the schedule and the counts"},
		},
		Action: upTo(1, func(ctx context.Context, c *cli.Command) error { return runExplore(ctx, t, c, part) }),
	}
}

// errBadEnd is a run that did not end well, of which all is said.
var errBadEnd = fail(exitRefused, cmdline.ErrSaid)

func runExplore(ctx context.Context, t *term, c *cli.Command, part shard.Part) error {
	if file := c.String("replay"); file != "" {
		return replay(t, c, file)
	}
	if c.Bool("list") {
		return explore.WriteLibrary(t.Out)
	}
	kernel, err := explore.Kernel(c.String("profile"), c.StringSlice("bug"))
	if err != nil {
		return usagef("%w", err)
	}
	if c.Int("bound") < -1 || c.Int("max-runs") < 1 || c.Int("walks") < 0 {
		return usagef("--bound is -1 or more, --max-runs 1 or more, --walks 0 or more")
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	far := &explore.Progress{MaxRuns: c.Int("max-runs"), Say: func(line string) { t.ProgressDone(); t.Sayf("%s", line) }}
	if t.ErrIsTerminal {
		far.Bar = func(what string, runs int) { t.Count(what, "runs", int64(runs), 0) }
	}
	o := explore.Options{Profile: kernel, Bound: c.Int("bound"), MaxRuns: c.Int("max-runs"), Progress: far.Show}
	if c.Bool("all") {
		if c.Args().Present() || c.Int("walks") > 0 || c.Bool("json") || c.Bool("page") || c.String("out")+c.String("svg")+c.String("perfetto") != "" {
			return usagef("--all takes --profile, --bug, --bound, --max-runs and --shard only")
		}
		names := explore.Library()
		out, err := t.shard(part, names, "scenarios", struct{}{})
		if err != nil {
			return err
		}
		good, err := explore.CheckLibrary(ctx, &explore.Checks{Out: t.Out, Shard: out, Begin: far.Begin, End: t.ProgressDone}, shard.Of(part, names), o)
		if err == nil && !good {
			err = errBadEnd
		}
		return err
	}
	if !part.Whole() {
		return usagef("--shard divides the scenarios of --all; a scenario alone is explored as one")
	}
	p, err := scenario(c)
	if err != nil {
		return err
	}
	far.Begin("")
	var res *explore.Result
	if walks := c.Int("walks"); walks > 0 {
		res, err = p.Walk(ctx, o, walks, c.Uint64("seed"))
	} else {
		res, err = p.Explore(ctx, o)
	}
	t.ProgressDone()
	if err != nil {
		return err
	}
	return showExplored(t, c, p, kernel, res)
}

// scenario is the one that the command line names, or the bug's.
func scenario(c *cli.Command) (*explore.Program, error) {
	name, bugs := c.Args().First(), c.StringSlice("bug")
	if name == "" && len(bugs) != 1 {
		return nil, usagef("explore takes a scenario, --bug NUMBER, or --replay FILE; try %s --help", c.FullName())
	}
	p, err := explore.Open(name, bugs)
	if errors.Is(err, explore.ErrNone) {
		err = fmt.Errorf("%s is no scenario of the library (--list has them), and no file", name)
	}
	if err != nil {
		return nil, fail(exitImage, err)
	}
	return p, nil
}

func showExplored(t *term, c *cli.Command, p *explore.Program, kernel *profile.Config, res *explore.Result) error {
	bugs := c.StringSlice("bug")
	if res.Failing != nil {
		res.Failing.Bugs = bugs
	}
	if err := pictured(c, res.Failing); err != nil {
		return err
	}
	r := p.Report(kernel, bugs, c.Int("bound"), res)
	r.Walks, r.Seed = c.Int("walks"), c.Uint64("seed")
	if c.Bool("page") && res.Failing != nil {
		r.Page = pageLink(res.Failing)
	}
	if err := cmdline.Form(c, r.WriteText, r.WriteJSON, nil)(t.Out); err != nil {
		return err
	}
	if res.Verdict != explore.OK {
		return errBadEnd
	}
	return nil
}

func replay(t *term, c *cli.Command, file string) error {
	if c.Args().Present() || len(c.StringSlice("bug")) > 0 {
		return usagef("--replay takes the scenario, the profile and the bugs from the schedule")
	}
	text, err := bounded.ReadFile(file, explore.MaxSchedule)
	if err != nil {
		return fail(exitImage, err)
	}
	again, said, err := explore.Replay(string(text))
	if err != nil {
		return fail(exitImage, fmt.Errorf("%s: %w", file, err))
	}
	if err := pictured(c, again); err != nil {
		return err
	}
	fmt.Fprint(t.Out, again)
	if c.Bool("page") {
		fmt.Fprintf(t.Out, "\n%s\n", pageLink(again))
	}
	if again.Verdict != said {
		t.Sayf("the schedule says %s", said)
		return errBadEnd
	}
	return nil
}

// pageLink is a link to a schedule beside the page's file.
func pageLink(s *explore.Schedule) string { return pageFile + "#explore?order=" + s.Link() }

// pictured writes what --out, --svg and --perfetto ask for.
func pictured(c *cli.Command, s *explore.Schedule) error {
	if err := s.WriteFiles(c.String("out"), c.String("svg"), c.String("perfetto")); err != nil {
		return fail(exitImage, err)
	}
	return nil
}
