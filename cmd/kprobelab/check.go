package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/bpf"
	"kprobelab/internal/archive"
	"kprobelab/internal/cmdline"
	"kprobelab/internal/report"
	"kprobelab/kprobes/hazard"
	"kprobelab/shard"
)

func checkCommand(t *term) *cli.Command {
	var part shard.Part
	return &cli.Command{
		Name:        "check",
		Usage:       "tell whether a tool's probes attach, and how they run, on several kernels",
		ArgsUsage:   "PROBES [IMAGE...]",
		Description: described("check"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "archive", Usage: "ask the kernels in `DIR`, which kprobelab pack has made"},
			&cli.StringSliceFlag{Name: "release", Usage: "of the archive, the releases that match `GLOB` (repeatable)"},
			&cli.BoolFlag{Name: "changed", Usage: "with --archive: only the probes that some kernels answer differently"},
			&cli.BoolFlag{Name: "load", Usage: "also boot the kernels, and load the programs of the object PROBES by their verifiers, as kprobelab bpf does"},
			&cli.BoolFlag{Name: "offline", Usage: "with --load: fetch nothing, and say what is missing"},
			&cli.StringSliceFlag{Name: "btf", Usage: "with --load: relocate against the types of `[KERNEL=]FILE`, as kprobelab bpf does (repeatable)"},
			&cli.StringFlag{Name: "contract", Usage: "with --load: complete the object as `FILE` says, as kprobelab bpf does"},
			&cli.StringFlag{Name: "waivers", Usage: "let pass what `FILE` says: lines of PROBE KERNEL DATE REASON, each in force until its date"},
			&cli.StringFlag{Name: "since", Usage: "fail only on what is new since `FILE`, the output of an earlier check --json"},
			&cli.StringSliceFlag{Name: "allow", Usage: "let this `HAZARD` pass, by its name (repeatable)"},
			&cli.StringFlag{Name: "format", DefaultText: "text", Usage: "`FORMAT`: " + strings.Join(report.CheckFormats, ", ") + " (error lines that a CI host shows beside the list)"},
			&cli.StringFlag{Name: "via", Value: "module", Usage: "attach what a text names by `WAY`: module (register_kprobe), events (kprobe_events), bpf (a perf event)"},
			&cli.BoolFlag{Name: "tsv", Usage: "as --format tsv: a header, and a line for each probe and image"},
			&cli.BoolFlag{Name: "json", Usage: "as --format json: one object with images, and probes with an answer for each image"},
			shardFlag(&part, "the kernels"),
			decoderFlag("x86asm"), debuginfoFlag(),
		}, imageFlags()...),
		Action: func(ctx context.Context, c *cli.Command) error { return t.differences(check(ctx, t, c, part)) },
	}
}

func check(ctx context.Context, t *term, c *cli.Command, part shard.Part) error {
	if err := cmp.Or(cmdline.OneOf(c, "tsv", "json", "format"), cmdline.OneOf(c, "json", "format")); err != nil {
		return err
	}
	format, err := report.CheckFormat(c.IsSet("json"), c.IsSet("tsv"), c.String("format"))
	if err != nil {
		return usagef("--format takes %w", err)
	}
	args := operands(c)
	dir := c.String("archive")
	switch {
	case operand(c, 0) == "", len(args) == 1 && dir == "":
		return usagef("check takes the probes and at least one image, or --archive DIR; try %s --help", c.FullName())
	case dir != "" && c.Bool("load"):
		return usagef("--load boots kernels, and an archive has none to boot: name them by --kernel")
	case !c.Bool("load") && (c.IsSet("btf") || c.IsSet("contract")):
		return usagef("--btf and --contract go with --load")
	case dir == "" && (c.IsSet("release") || c.Bool("changed")):
		return usagef("--release and --changed go with --archive DIR")
	}
	via, ok := report.Vias[c.String("via")]
	if !ok {
		return usagef("--via takes module, events or bpf, not %q", c.String("via"))
	}
	gate, err := report.OpenGate(c.StringSlice("allow"), c.String("waivers"), c.String("since"))
	switch {
	case errors.Is(err, hazard.ErrUnknown):
		return usagef("%w", err)
	case err != nil:
		return fail(exitImage, err)
	}
	probes, err := readProbes(args[0])
	if err != nil {
		return err
	}
	report.AskBy(probes, via)
	var files []string
	if dir != "" {
		if files, err = packedFiles(dir, c.StringSlice("release")); err != nil {
			return err
		}
	}
	form := report.CheckForm{Format: format, List: args[0], Files: len(files), Changed: c.Bool("changed"), Gate: gate}
	out, err := t.shard(part, slices.Concat(args[1:], files), "kernels", form)
	if err != nil {
		return err
	}
	images, mine := shard.Of(part, args[1:]), shard.Of(part, slices.Concat(args[1:], files))
	var columns []report.Column
	kernels := &bpf.Table{Columns: make([]bpf.Column, len(images))}
	if c.Bool("load") {
		if kernels, err = t.askKernels(ctx, c, args[0], images, &bpf.Options{}); kernels == nil {
			return err
		}
	}
	for n, path := range images {
		column, err := checkImage(t, c, path, &kernels.Columns[n], probes, gate.Allow)
		if err != nil {
			return err
		}
		columns = append(columns, column)
	}
	packed := mine[len(images):]
	columns = append(columns, archive.Check(packed, probes, gate.Allow, func(n int) { t.Count("kernels", "kernels", int64(n), int64(len(packed))) })...)
	t.ProgressDone()
	if out != nil {
		return shard.All(out, columns)
	}
	return ended(form.Show(t.Out, t.Err, columns))
}

// checkImage asks an image, beside a booted kernel's answers, if it was asked.
func checkImage(t *term, c *cli.Command, path string, booted *bpf.Column, probes []report.Probe, allow map[hazard.ID]bool) (report.Column, error) {
	if booted.Err != "" {
		return report.Column{Unread: fmt.Errorf("%s: %s", path, booted.Err)}, nil
	}
	img, err := openImage(t, c, cmp.Or(booted.Dump, path))
	if err != nil {
		return report.Column{}, err
	}
	word := ""
	if slices.Contains(c.StringSlice("kernel"), path) && !exists(path) {
		word = path
	}
	one := report.CheckImageFile(img, debuginfoOf(c, img), word, probes, allow)
	if booted.Dump != "" {
		one.Loaded(booted.Programs)
	}
	return report.Column{Check: one}, nil
}

func readProbes(name string) (probes []report.Probe, err error) {
	err = readList(name, name, func(r io.Reader) error {
		probes, err = report.ReadProbes(r)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(name, "./") {
		err = fmt.Errorf("%w (PROBES is a file, or - to read them from standard input)", err)
	}
	return probes, err
}
