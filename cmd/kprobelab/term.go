package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/callsyntax"
	"kprobelab/internal/cmdline"
	"kprobelab/internal/terminal"
)

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
