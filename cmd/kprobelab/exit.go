package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/urfave/cli/v3"

	"kprobelab/doctor"
	"kprobelab/internal/callsyntax"
	"kprobelab/internal/cmdline"
	"kprobelab/internal/engine"
	"kprobelab/internal/report"
	"kprobelab/internal/terminal"
	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/run"
)

// The exit codes; help/exit-codes.part documents them.
const (
	exitOK       = 0
	exitRefused  = 1
	exitUsage    = cmdline.ExitUsage
	exitImage    = 3
	exitNoEngine = 4
	exitEngine   = 5
	exitFailed   = 6
)

// fail gives an error its exit code.
func fail(code int, err error) error { return cmdline.Fail(code, err) }

// ended is the error of a command that has printed its result: code is its exit code, err the reason if the output does not say it.
func ended(code int, err error) error {
	switch {
	case code == exitOK:
		return err
	case err == nil:
		err = cmdline.ErrSaid
	}
	return fail(code, err)
}

// usagef returns an error of the command line: its exit code is exitUsage.
func usagef(format string, args ...any) error { return cmdline.Usagef(format, args...) }

// exitCode is the code of an error. A failure of the engine is one whatever was
// being done; other errors have a code of their own, or one of their kind. A
// command line that the parser refused has neither.
func exitCode(err error) int {
	var f *cmdline.Failure
	var limit *terminal.LimitError
	var syntax *callsyntax.Error
	var path *fs.PathError
	var ofRun *run.Error
	var exit *run.ExitError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, engine.ErrMissing), errors.Is(err, machine.ErrNeedsUnicorn):
		return exitNoEngine
	case errors.Is(err, machine.ErrEngine):
		return exitEngine
	case errors.Is(err, run.ErrFailed):
		return exitFailed
	case errors.As(err, &f):
		return f.Code
	case errors.As(err, &ofRun):
		return exitOfRun[ofRun.Kind]
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, &limit), errors.Is(err, report.ErrUncorrected):
		return exitRefused
	case errors.As(err, &syntax):
		return exitUsage
	case errors.Is(err, kimage.ErrFormat), errors.As(err, &path), errors.Is(err, os.ErrNotExist):
		return exitImage
	}
	return exitUsage
}

// exitOfRun are the codes of a run's errors.
var exitOfRun = map[run.Kind]int{run.Refused: exitRefused, run.Misused: exitUsage, run.Unusable: exitImage}

// term is the terminal of one command line.
type term struct {
	*terminal.Term
	// args are the words of the command line, which errors may repeat.
	args []string
	// compared are the images that --decoder both has read.
	compared []*compared
}

func newTerm(stdout, stderr io.Writer, args ...string) *term {
	t := &term{Term: terminal.New(stdout, stderr), args: args}
	t.Report = t.report
	return t
}

// report prints an error as one line (a call's syntax with a caret under the
// place) and returns the exit code.
func (t *term) report(err error) int {
	if err == nil {
		return exitOK
	}
	t.ProgressDone()
	if errors.Is(err, cmdline.ErrSaid) {
		return exitCode(err)
	}
	fmt.Fprintf(t.Err, "%s %s\n", t.ErrStyle.Red("kprobelab:"), terminal.ErrorText(err, t.args))
	var syntax *callsyntax.Error
	if errors.As(err, &syntax) {
		fmt.Fprintln(t.Err, terminal.Indent(syntax.Caret()))
	}
	if next := doctor.Next(err); next != "" {
		t.Sayf("  next: %s", next)
	}
	return exitCode(err)
}

// rawFlag lets what programs write reach a terminal as it is.
func rawFlag(t *term) cli.Flag {
	return &cli.BoolFlag{Name: "raw", Usage: "print what programs write as it is on a terminal, too; control characters are shown as \\u001b there else",
		Action: func(_ context.Context, _ *cli.Command, raw bool) error {
			if raw {
				t.Raw()
			}
			return nil
		}}
}
