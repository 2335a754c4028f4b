package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

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
			&cli.StringSliceFlag{Name: "allow", Usage: "let this `HAZARD` pass, by its name (repeatable)"},
			&cli.StringFlag{Name: "format", Usage: "`FORMAT`: " + strings.Join(report.CheckFormats, ", ") + " (error lines that a CI host shows beside the list)"},
			&cli.StringFlag{Name: "via", Value: "module", Usage: "attach what a text names by `WAY`: module (register_kprobe), events (kprobe_events), bpf (a perf event)"},
			&cli.BoolFlag{Name: "tsv", Usage: "as --format tsv: a header, and a line for each probe and image"},
			&cli.BoolFlag{Name: "json", Usage: "as --format json: one object with images, and probes with an answer for each image"},
			shardFlag(&part, "the kernels"),
			decoderFlag("x86asm"), debuginfoFlag(),
		}, imageFlags()...),
		Action: func(_ context.Context, c *cli.Command) error { return t.differences(check(t, c, part)) },
	}
}

func check(t *term, c *cli.Command, part shard.Part) error {
	format, err := checkFormat(c)
	if err != nil {
		return err
	}
	args := operands(c)
	dir := c.String("archive")
	switch {
	case operand(c, 0) == "", len(args) == 1 && dir == "":
		return usagef("check takes the probes and at least one image, or --archive DIR; try %s --help", c.FullName())
	case dir == "" && (c.IsSet("release") || c.Bool("changed")):
		return usagef("--release and --changed go with --archive DIR")
	}
	via, ok := report.Vias[c.String("via")]
	if !ok {
		return usagef("--via takes module, events or bpf, not %q", c.String("via"))
	}
	allowed, err := hazard.Named(c.StringSlice("allow"))
	if err != nil {
		return usagef("--allow: %w", err)
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
	form := report.CheckForm{Format: format, List: args[0], Files: len(files), Changed: c.Bool("changed"), Allow: allowed}
	out, err := t.shard(part, slices.Concat(args[1:], files), "kernels", form)
	if err != nil {
		return err
	}
	images, mine := shard.Of(part, args[1:]), shard.Of(part, slices.Concat(args[1:], files))
	var columns []report.Column
	for _, path := range images {
		img, err := openImage(t, c, path)
		if err != nil {
			return err
		}
		kernel := report.OfImage(img)
		info := debuginfoOf(c, img)
		kernel.Define, kernel.Callers = info.Definitions, info.Inlined
		one := &report.Check{Allow: allowed}
		one.Add(kernel, probes)
		columns = append(columns, report.Column{Check: one})
	}
	columns = append(columns, checkArchive(t, mine[len(images):], probes, allowed)...)
	if out != nil {
		return shard.All(out, columns)
	}
	return ended(form.Show(t.Out, columns))
}

// checkFormat is the form that the flags ask for.
func checkFormat(c *cli.Command) (asked string, err error) {
	if err := cmp.Or(cmdline.OneOf(c, "tsv", "json", "format"), cmdline.OneOf(c, "json", "format")); err != nil {
		return "", err
	}
	switch asked = c.String("format"); {
	case c.IsSet("json"):
		asked = "json"
	case c.IsSet("tsv"):
		asked = "tsv"
	case !c.IsSet("format"):
		asked = "text"
	}
	if !slices.Contains(report.CheckFormats, asked) {
		return "", usagef("--format takes %s, not %q", strings.Join(report.CheckFormats, ", "), asked)
	}
	return asked, nil
}

// checkArchive asks the kernels of an archive.
func checkArchive(t *term, files []string, probes []report.Probe, allow map[hazard.ID]bool) []report.Column {
	// Each kernel is garbage when the next one is read: a third less memory for a tenth more time.
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	defer t.ProgressDone()
	return archive.Check(files, probes, allow, func(n int) { t.Count("kernels", "kernels", int64(n), int64(len(files))) })
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
