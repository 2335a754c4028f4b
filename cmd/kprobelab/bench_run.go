package main

import (
	"bufio"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bench"
	"kprobelab/internal/bounded"
	"kprobelab/internal/callsyntax"
	"kprobelab/internal/cmdline"
	"kprobelab/kimage"
	"kprobelab/run"
)

func (r *benchRun) execute(t *term) error {
	rep, err := bench.Run(&r.o)
	t.ProgressDone()
	if err != nil {
		return benchFailure(err)
	}
	w := bufio.NewWriter(t.Out)
	return errors.Join(r.Write(w, rep), w.Flush())
}

// benchFailure gives an error its exit code; errors of an image and of a call's
// syntax have theirs already.
func benchFailure(err error) error {
	var f *cmdline.Failure
	var syntax *callsyntax.Error
	switch {
	case errors.As(err, &f):
		return err
	case errors.As(err, &syntax):
		return fmt.Errorf("--call: %w", err)
	}
	return fail(exitRefused, run.OneLine(err))
}

// programs measures probes on a program.
func (r *benchRun) programs(t *term, c *cli.Command) error {
	if err := cmdline.OneOf(c, "programs", "path", "others", "handler", "plot", "against", "symbol", "image", "call"); err != nil {
		return err
	}
	o := &bench.ProgramOptions{
		Open: func() (*kimage.Image, error) { return openImage(t, c, c.String("programs")) },
		Hits: r.o.Hits, Hardware: r.o.Hardware,
		Progress: func(stage string, done, total int64) { t.Count(stage, "rounds", done, total) },
	}
	if c.IsSet("rounds") {
		o.Rounds = r.o.Rounds
	}
	rep, err := bench.Programs(o)
	t.ProgressDone()
	if err != nil {
		return benchFailure(err)
	}
	w := bufio.NewWriter(t.Out)
	return errors.Join(r.WritePrograms(w, rep), w.Flush())
}

// benchFiles holds the files of bench: against has the real kernels to compare with,
// and report is shown in place of a run. Both are "" without the flag.
type benchFiles struct {
	against, report string
	bench.Form
}

func (f *benchFiles) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "against", Destination: &f.against, Usage: "compare with the real kernels of `FILE`, which make bench-qemu writes"},
		&cli.StringFlag{Name: "report", Destination: &f.report, Usage: "measure nothing: show the report in `FILE`, which --json wrote"},
	}
}

// open checks the flags and reads the file of --against.
func (f *benchFiles) open(c *cli.Command) error {
	if err := cmdline.OneOf(c, "report", "path", "rounds", "hits", "others", "handler", "hardware", "symbol", "image", "call", "programs"); err != nil {
		return err
	}
	if err := errors.Join(cmdline.OneOf(c, "csv", "against"), cmdline.OneOf(c, "symbol", "against")); err != nil || f.against == "" {
		return err
	}
	text, err := bounded.ReadFile(f.against, bounded.BenchFile)
	if err != nil {
		return err
	}
	if f.Real, err = bench.ParseReal(string(text)); err != nil {
		return fail(exitImage, fmt.Errorf("%s: %w", f.against, err))
	}
	return nil
}

// read is the report of --report.
func (f *benchFiles) read() (*bench.Report, error) {
	text, err := bounded.ReadFile(f.report, bounded.BenchFile)
	if err != nil {
		return nil, err
	}
	rep, err := bench.ParseReport(text)
	if err != nil {
		return nil, fail(exitImage, fmt.Errorf("%s: not what bench --json writes: %w", f.report, err))
	}
	if rep.Target != nil && f.Real != nil {
		return nil, usagef("--against: %s is of %s, which the real kernels did not measure", f.report, rep.Target.Place)
	}
	return rep, nil
}
