package main

import (
	"bufio"
	"errors"
	"fmt"

	"kprobelab/internal/bench"
	"kprobelab/internal/callsyntax"
	"kprobelab/internal/cmdline"
	"kprobelab/run"
)

func (r *benchRun) execute(t *term) error {
	rep, err := bench.Run(&r.o)
	t.ProgressDone()
	if err != nil {
		return benchFailure(err)
	}
	w := bufio.NewWriter(t.Out)
	return errors.Join(r.show(w, rep), w.Flush())
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
