package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/internal/cmdline"
	"kprobelab/internal/debuginfo"
	"kprobelab/internal/perfprobe"
	"kprobelab/internal/source"
	"kprobelab/kprobes/rule"
	"kprobelab/profile"
	"kprobelab/run"
)

func probeCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:        "probe",
		Usage:       "say in the words of the source what a probe can see: variables, lines, definitions",
		ArgsUsage:   "[IMAGE]",
		Description: described("probe"),
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "vars", Aliases: []string{"V"}, Usage: "list the variables at `PLACE` (repeatable)"},
			&cli.StringSliceFlag{Name: "line", Aliases: []string{"L"}, Usage: "list the lines of `FUNC|FILE[:A[-B|+N]]` that can be probed (repeatable)"},
			&cli.StringSliceFlag{Name: "definition", Aliases: []string{"D"}, Usage: "print the definitions of `PROBE` for kprobe_events (repeatable)"},
			&cli.StringSliceFlag{Name: "calls", Usage: "which calls of `FUNC` a probe on it sees (repeatable)"},
			&cli.StringFlag{Name: debuginfoFlagName, Usage: "read DWARF from `FILE`, not from IMAGE"},
			&cli.StringFlag{Name: "source", Usage: "with -L: the source's text is in `DIR` (default: the folder of the file with the debugging information, and the working directory; no source outside of these is read)"},
			&cli.BoolFlag{Name: "externs", Usage: "with -V: the unit's global variables, too"},
			kernelFlag(),
			&cli.StringFlag{Name: "profile", Usage: "write for this `PROFILE`'s kprobe_events, not for the release that the file names: " +
				strings.Join(profile.All(), ", ")},
			&cli.StringFlag{Name: "readme", Usage: "write for the kernel whose tracing README is `FILE`; /dev/null is what perf writes where it cannot read one"},
		},
		Action: func(_ context.Context, c *cli.Command) error { return probe(t, c) },
	}
}

func probe(t *term, c *cli.Command) error {
	defer debug.SetGCPercent(debug.SetGCPercent(collectAt))
	if err := cmp.Or(cmdline.OneOf(c, "profile", "readme"), atMost(c, 1)); err != nil {
		return err
	}
	if !c.IsSet("vars") && !c.IsSet("line") && !c.IsSet("definition") && !c.IsSet("calls") {
		return usagef("probe takes -V, -L, -D or --calls; try %s --help", c.FullName())
	}
	path := c.String("debuginfo")
	if path == "" {
		path = operand(c, 0)
	}
	f, err := probeFile(t, c, path)
	if err != nil {
		return err
	}
	features, err := probeFeatures(c, f)
	if err != nil {
		return err
	}
	for _, v := range c.StringSlice("vars") {
		if err := debuginfo.WriteVariables(t.Out, f, v, c.Bool("externs")); err != nil {
			return run.SourceError(fmt.Errorf("-V: %w", err))
		}
	}
	for _, l := range c.StringSlice("line") {
		if err := debuginfo.WriteLines(t.Out, f, l, c.String("source")); err != nil {
			return run.SourceError(fmt.Errorf("-L: %w", err))
		}
	}
	w := &perfprobe.Writer{File: f, Features: features}
	for _, d := range c.StringSlice("definition") {
		if err := debuginfo.WriteDefinitions(t.Out, w, d); err != nil {
			return run.SourceError(fmt.Errorf("-D: %w", err))
		}
	}
	for _, fn := range c.StringSlice("calls") {
		if err := debuginfo.WriteCalls(t.Out, f, fn); err != nil {
			return run.SourceError(fmt.Errorf("--calls: %w", err))
		}
	}
	return nil
}

// probeFile opens the file with the debugging information: an image without any knows
// its BTF and its symbols.
func probeFile(t *term, c *cli.Command, path string) (*source.File, error) {
	if path != "" && path != "-" {
		f, err := source.Open(path)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, source.ErrNone) || c.IsSet(debuginfoFlagName) {
			return nil, fail(exitImage, err)
		}
		if f, err := source.OfProgram(path); err == nil {
			return f, nil
		}
	}
	img, err := openImage(t, c, path)
	if err != nil {
		return nil, err
	}
	if c.IsSet("definition") && !img.Profile().Tracing.Exists {
		return nil, fail(exitRefused, fmt.Errorf("%s: %s", img.Name(), rule.NoEvents.Why()))
	}
	f, err := debuginfo.OfImage(img)
	if err != nil {
		return nil, fail(exitImage, fmt.Errorf("%s: %w", img.Name(), err))
	}
	return f, nil
}

// probeFeatures returns the features of probe definitions that the target kernel has: by --readme, by --profile, or by
// the release that the image names. If none is known, it has them all.
func probeFeatures(c *cli.Command, f *source.File) (perfprobe.Features, error) {
	if name := c.String("readme"); name != "" {
		b, err := bounded.ReadFile(name, bounded.Readme)
		if err != nil {
			return perfprobe.Features{}, fail(exitImage, err)
		}
		return perfprobe.ReadFeatures(string(b)), nil
	}
	p, err := profileOf(c, "")
	if err != nil {
		return perfprobe.Features{}, err
	}
	if v, ok := profile.ParseVersion(f.Release()); ok && p == nil {
		p = profile.ForRelease(v)
	}
	if p == nil {
		return perfprobe.Features{Hex: true, Immediate: true, Several: true, User: true}, nil
	}
	return debuginfo.Features(p), nil
}
