package merge

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"kprobelab/bpf"
	"kprobelab/internal/explore"
	"kprobelab/internal/report"
	"kprobelab/internal/selfcheck"
	"kprobelab/run/matrix"
	"kprobelab/shard"
)

// ErrOption: an option is for the shards of another command, or there is no such format.
var ErrOption = errors.New("the option does not fit")

// Options say how results are printed.
type Options struct {
	// Out gets the results, Err what a command prints beside them; nil discards.
	Out, Err io.Writer
	// RawOut and RawErr get the bytes that a guest's program has written; Out and Err if nil.
	RawOut, RawErr io.Writer
	// Colour colours differences of exec.
	Colour bool
	// Format, for check alone, takes the place of the shards' own: text, tsv, json, junit, annotations.
	Format string
	// JUnit, for exec and bpf, is a file that gets the answers of all kernels as JUnit XML.
	JUnit string
}

// mergers print the results of each command's shards, and return the exit code of its one run.
var mergers = map[string]func(*shard.Results, *Options) (code int, err error){
	"bpf":       loaded,
	"check":     check,
	"exec":      exec,
	"explore":   explored,
	"scan":      scan,
	"selfcheck": selfchecked,
	shard.Jobs:  func(r *shard.Results, o *Options) (int, error) { return shard.MergeJobs(o.RawOut, r) },
}

// Print prints the results of all shards of a command as one run of it prints them. code is the exit code of that run; err is the
// run's error, which is nil if the output says all. Damaged results are shard.ErrShards, with code 3; options that do not fit are
// ErrOption, with code 2. An error with code 0 is of an output.
func Print(r *shard.Results, o *Options) (code int, err error) {
	do := mergers[r.Command]
	if do == nil || o.Format != "" && r.Command != "check" || o.JUnit != "" && r.Command != "exec" && r.Command != "bpf" {
		return 2, fmt.Errorf("%w: a format is for shards of check, a JUnit file for shards of exec and bpf, and these are of %s", ErrOption, r.Command)
	}
	to := *o
	to.Out, to.Err = cmp.Or(to.Out, io.Discard), cmp.Or(to.Err, io.Discard)
	to.RawOut, to.RawErr = cmp.Or(to.RawOut, to.Out), cmp.Or(to.RawErr, to.Err)
	if code, err = do(r, &to); errors.Is(err, shard.ErrShards) {
		code = 3
	}
	return code, err
}

func check(r *shard.Results, o *Options) (code int, err error) {
	if o.Format != "" && !slices.Contains(report.CheckFormats, o.Format) {
		return 2, fmt.Errorf("%w: check has the formats %s, not %q", ErrOption, strings.Join(report.CheckFormats, ", "), o.Format)
	}
	form, columns, err := shard.Collect[report.CheckForm, report.Column](r)
	if err != nil {
		return 0, err
	}
	form.Format = cmp.Or(o.Format, form.Format)
	return form.Show(o.Out, o.Err, columns)
}

func loaded(r *shard.Results, o *Options) (code int, err error) {
	form, columns, err := bpf.MergeShards(r)
	if err != nil {
		return 0, err
	}
	return form.Show(o.Out, o.JUnit, columns)
}

func exec(r *shard.Results, o *Options) (code int, err error) {
	m, form, err := matrix.Merged(r)
	if err != nil {
		return 0, err
	}
	return m.Show(form, &matrix.Output{Out: o.Out, Err: o.Err, RawOut: o.RawOut, RawErr: o.RawErr, Colour: o.Colour, JUnit: o.JUnit})
}

func explored(r *shard.Results, o *Options) (code int, err error) {
	good, err := explore.Merge(o.Out, r)
	if err == nil && !good {
		code = 1
	}
	return code, err
}

func scan(r *shard.Results, o *Options) (code int, err error) {
	form, err := shard.Form[report.ScanForm](r)
	if err != nil {
		return 0, err
	}
	s, rest := form.Scan(), []string(nil)
	out := &report.ScanOutput{Out: o.Out, Err: o.Err, Done: func() {}}
	err = s.Show(out, form.Heading, form.Format, func() []string { return selfcheck.JoinRest(rest) }, func(f report.ScanFormat) (totals *report.ScanTotals, err error) {
		totals, rest, err = s.WriteResults(o.Out, f, r)
		return totals, err
	})
	if errors.Is(err, report.ErrUncorrected) {
		code = 1
	}
	return code, err
}

func selfchecked(r *shard.Results, o *Options) (code int, err error) {
	form, err := shard.Form[selfcheck.Form](r)
	if err != nil {
		return 0, err
	}
	res, err := selfcheck.Merge(r)
	if err != nil {
		return 0, err
	}
	form.Begin(o.Out, o.Err)
	return form.Show(o.Out, res)
}
