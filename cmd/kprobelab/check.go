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
)

func checkCommand(t *term) *cli.Command {
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
			&cli.StringFlag{Name: "format", Usage: "`FORMAT`: " + strings.Join(checkFormats, ", ") + " (error lines that a CI host shows beside the list)"},
			&cli.StringFlag{Name: "via", Value: "module", Usage: "attach what a text names by `WAY`: module (register_kprobe), events (kprobe_events), bpf (a perf event)"},
			&cli.BoolFlag{Name: "tsv", Usage: "as --format tsv: a header, and a line for each probe and image"},
			&cli.BoolFlag{Name: "json", Usage: "as --format json: one object with images, and probes with an answer for each image"},
			decoderFlag("x86asm"), debuginfoFlag(),
		}, imageFlags()...),
		Action: func(_ context.Context, c *cli.Command) error { return t.differences(check(t, c)) },
	}
}

// checkFormats are the forms of check's output.
var checkFormats = []string{"text", "tsv", "json", "junit", "annotations"}

func check(t *term, c *cli.Command) error {
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
	r := report.Check{Allow: map[hazard.ID]bool{}}
	if err := allow(r.Allow, c.StringSlice("allow")); err != nil {
		return err
	}
	probes, err := readProbes(args[0])
	if err != nil {
		return err
	}
	report.AskBy(probes, via)
	for _, path := range args[1:] {
		img, err := openImage(t, c, path)
		if err != nil {
			return err
		}
		kernel := report.OfImage(img)
		info := debuginfoOf(c, img)
		kernel.Define, kernel.Callers = info.Definitions, info.Inlined
		r.Add(kernel, probes)
	}
	var unread error
	if dir != "" {
		asked := len(r.Images)
		if unread, err = checkArchive(t, &r, dir, c.StringSlice("release"), probes); err != nil {
			return err
		}
		if unread != nil && len(r.Images) == asked {
			return fail(exitImage, unread)
		}
	}
	r.Compare()
	write := map[string]func(io.Writer) error{
		"text": r.WriteText, "json": r.WriteJSON, "tsv": r.WriteTSV, "junit": r.WriteJUnit,
		"annotations": func(w io.Writer) error { return r.WriteAnnotations(w, args[0]) },
	}[format]
	if format == "text" && dir != "" {
		write = func(w io.Writer) error { return r.WriteRuns(w, c.Bool("changed")) }
	}
	if err := write(t.Out); err != nil {
		return err
	}
	bad := r.Bad()
	switch {
	case unread != nil:
		return fail(exitImage, errors.New(strings.Join(append(bad, unread.Error()), "; ")))
	case len(bad) > 0:
		return fail(exitRefused, errors.New(strings.Join(bad, ", ")))
	}
	return nil
}

// allow notes the hazards that are to pass.
func allow(to map[hazard.ID]bool, names []string) error {
	for _, name := range names {
		if _, ok := hazard.ByID(hazard.ID(name)); !ok {
			return usagef("--allow: there is no hazard %q; kprobelab hazards lists them", name)
		}
		to[hazard.ID(name)] = true
	}
	return nil
}

// checkFormat is the form that the flags ask for.
func checkFormat(c *cli.Command) (string, error) {
	if err := cmp.Or(cmdline.OneOf(c, "tsv", "json", "format"), cmdline.OneOf(c, "json", "format")); err != nil {
		return "", err
	}
	asked := "text"
	switch {
	case c.IsSet("format"):
		asked = c.String("format")
	case c.IsSet("json"):
		asked = "json"
	case c.IsSet("tsv"):
		asked = "tsv"
	}
	if !slices.Contains(checkFormats, asked) {
		return "", usagef("--format takes %s, not %q", strings.Join(checkFormats, ", "), asked)
	}
	return asked, nil
}

// checkArchive adds a column for each kernel of an archive. unread names the files that could
// not be read: the others have answered.
func checkArchive(t *term, r *report.Check, dir string, releases []string, probes []report.Probe) (unread, err error) {
	files, err := packedFiles(dir, releases)
	if err != nil {
		return nil, err
	}
	// Each kernel is garbage when the next one is read: a third less memory for a tenth
	// more time.
	defer debug.SetGCPercent(debug.SetGCPercent(50))
	bad := archive.Check(r, files, probes, func(n int) { t.Count("kernels", "kernels", int64(n), int64(len(files))) })
	t.ProgressDone()
	return unreadFiles(bad), nil
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
