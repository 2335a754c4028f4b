package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bench"
	"kprobelab/internal/bounded"
	"kprobelab/internal/cmdline"
)

// benchFiles holds the files of bench: against has the real kernels to compare with,
// and report is shown in place of a run. Both are "" without the flag.
type benchFiles struct {
	against, report string
	// real is the content of against, nil without it.
	real *bench.RealKernels
}

func (f *benchFiles) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "against", Destination: &f.against, Usage: "compare with the real kernels of `FILE`, which make bench-qemu writes"},
		&cli.StringFlag{Name: "report", Destination: &f.report, Usage: "measure nothing: show the report in `FILE`, which --json wrote"},
	}
}

// open checks the flags and reads the file of --against.
func (f *benchFiles) open(c *cli.Command) error {
	for _, other := range []string{"path", "rounds", "hits", "others", "handler", "hardware", "symbol", "image", "call", "programs"} {
		if err := cmdline.OneOf(c, "report", other); err != nil {
			return err
		}
	}
	if err := errors.Join(cmdline.OneOf(c, "csv", "against"), cmdline.OneOf(c, "symbol", "against")); err != nil || f.against == "" {
		return err
	}
	text, err := bounded.ReadFile(f.against, bounded.BenchFile)
	if err != nil {
		return err
	}
	if f.real, err = bench.ParseReal(string(text)); err != nil {
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
	if rep.Target != nil && f.real != nil {
		return nil, usagef("--against: %s is of %s, which the real kernels did not measure", f.report, rep.Target.Place)
	}
	return rep, nil
}
