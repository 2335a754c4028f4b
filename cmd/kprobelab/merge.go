package main

import (
	"context"
	"errors"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/cmdline"
	"kprobelab/internal/explore"
	"kprobelab/internal/report"
	"kprobelab/internal/selfcheck"
	"kprobelab/internal/shard"
	"kprobelab/run/matrix"
)

func mergeCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:        "merge",
		Usage:       "print what all shards of a command have found, as one run of it prints that",
		ArgsUsage:   "FILE...",
		Description: described("merge"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Usage: "of check: print in this `FORMAT`, instead of the shards' own"},
			&cli.StringFlag{Name: "junit", Usage: "of exec: write the exit codes of all kernels to `FILE` as JUnit XML, for CI"},
		},
		Action: func(_ context.Context, c *cli.Command) error { return merge(t, c) },
	}
}

// mergers print the results of each command's shards.
var mergers = map[string]func(*term, *cli.Command, *shard.Results) error{
	"check": func(t *term, c *cli.Command, r *shard.Results) error {
		form, columns, err := shard.Collect[report.CheckForm, report.Column](r)
		if err != nil {
			return err
		}
		if form.Format, err = checkFormat(c, form.Format); err != nil {
			return err
		}
		return t.checked(columns, form)
	},
	"exec": func(t *term, c *cli.Command, r *shard.Results) error {
		m, form, err := matrix.Merged(r)
		if err != nil {
			return err
		}
		return t.showMatrix(m, form, c.String("junit"), false)
	},
	"explore": func(t *term, _ *cli.Command, r *shard.Results) error {
		good, err := explore.Merge(t.Out, r)
		if err == nil && !good {
			err = errBadEnd
		}
		return err
	},
	"scan": func(t *term, _ *cli.Command, r *shard.Results) error {
		form, err := shard.Form[report.ScanForm](r)
		if err != nil {
			return err
		}
		s, rest := form.Scan(), []string(nil)
		return t.showScan(form.Heading, form.Format, s, func() []string { return selfcheck.JoinRest(rest) }, func(f report.ScanFormat) (totals *report.ScanTotals, err error) {
			totals, rest, err = s.WriteResults(t.Out, f, r)
			return totals, err
		})
	},
}

func merge(t *term, c *cli.Command) error {
	if !c.Args().Present() {
		return usagef("merge takes the outputs of all shards; try %s --help", c.FullName())
	}
	r, err := shard.Open(cmdline.Version(), c.Args().Slice())
	if err != nil {
		return fail(exitImage, err)
	}
	defer r.Close()
	do := mergers[r.Command]
	if do == nil || c.IsSet("format") && r.Command != "check" || c.IsSet("junit") && r.Command != "exec" {
		return usagef("--format is for shards of check, --junit for shards of exec, and these are of %s", r.Command)
	}
	if err = do(t, c, r); errors.Is(err, shard.ErrShards) {
		err = fail(exitImage, err)
	}
	return err
}

// shardFlag is the flag for a shard of a command's items.
func shardFlag(to *shard.Part, items string) cli.Flag {
	return &cli.GenericFlag{Name: "shard", Usage: "do part `I/N` of " + items + " alone, for kprobelab merge",
		Value: cmdline.Each(func(text string) (err error) { *to, err = shard.Parse(text); return err })}
}

// shard begins the output of a shard of the items; it returns nil if all items are done here.
func (t *term) shard(p shard.Part, items []string, what string, form any) (*shard.Writer, error) {
	out, err := shard.Begin(t.Bytes(), cmdline.Version(), t.args, p, items, form)
	if out != nil && err == nil {
		t.Sayf("%s", out.Says(what))
	}
	return out, err
}
