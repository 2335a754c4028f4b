package main

import (
	"context"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/cmdline"
	"kprobelab/shard"
	"kprobelab/shard/merge"
)

func mergeCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:        "merge",
		Usage:       "print what all shards of a command have found, as one run of it prints that",
		ArgsUsage:   "FILE...",
		Description: described("merge"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "format", Usage: "of check: print in this `FORMAT`, instead of the shards' own"},
			&cli.StringFlag{Name: "junit", Usage: "of exec and bpf: write the answers of all kernels to `FILE` as JUnit XML, for CI"},
		},
		Action: func(_ context.Context, c *cli.Command) error { return mergeShards(t, c) },
	}
}

func mergeShards(t *term, c *cli.Command) error {
	if !c.Args().Present() {
		return usagef("merge takes the outputs of all shards; try %s --help", c.FullName())
	}
	r, err := shard.Open(cmdline.Version(), c.Args().Slice())
	if err != nil {
		return fail(exitImage, err)
	}
	defer r.Close()
	return ended(merge.Print(r, &merge.Options{
		Out: t.Out, Err: t.Err, RawOut: t.RawOut, RawErr: t.RawErr, Colour: bool(t.OutStyle), Format: c.String("format"), JUnit: c.String("junit"),
	}))
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
