//go:build !(cgo && linux && amd64)

package main

import "kprobelab/internal/bench"

func (r *benchRun) execute(*term) error { return engineMissing }

// The forms of a report are compiled, and tested, in every build.
var _ = (*benchRun)(nil).show

var _ *bench.Report
