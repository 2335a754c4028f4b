package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/callsyntax"
	"kprobelab/internal/engine"
	"kprobelab/internal/printable"
	"kprobelab/kimage"
	"kprobelab/machine"
	"kprobelab/run"
)

// The exit codes; help/exit-codes.part documents them.
const (
	exitOK       = 0
	exitRefused  = 1
	exitUsage    = 2
	exitImage    = 3
	exitNoEngine = 4
	exitEngine   = 5
	exitFailed   = 6
)

// failure is an error with its exit code.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

// errSaid is the error of a failure that nothing more is said of.
var errSaid = errors.New("")

// usagef returns an error of the command line: its exit code is exitUsage.
func usagef(format string, args ...any) error {
	return &failure{exitUsage, fmt.Errorf(format, args...)}
}

// exitCode is the code of an error. A failure of the engine is one whatever was
// being done; other errors have a code of their own, or one of their kind. A
// command line that the parser refused has neither.
func exitCode(err error) int {
	var f *failure
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
		return f.code
	case errors.As(err, &ofRun):
		return exitOfRun[ofRun.Kind]
	case errors.As(err, &exit):
		return exit.Code
	case errors.As(err, &syntax):
		return exitUsage
	case errors.Is(err, kimage.ErrFormat), errors.As(err, &path), errors.Is(err, os.ErrNotExist):
		return exitImage
	}
	return exitUsage
}

// exitOfRun are the codes of a run's errors.
var exitOfRun = map[run.Kind]int{run.Refused: exitRefused, run.Misused: exitUsage, run.Unusable: exitImage}

// report prints an error as one line (a call's syntax with a caret under the
// place) and returns the exit code.
func (t *term) report(err error) int {
	if err == nil {
		return exitOK
	}
	t.progressDone()
	if errors.Is(err, errSaid) {
		return exitCode(err)
	}
	fmt.Fprintf(t.err, "%s %s\n", t.errStyle.Red("kprobelab:"), withNames(err, os.Args[1:]))
	var syntax *callsyntax.Error
	if errors.As(err, &syntax) {
		fmt.Fprintln(t.err, indent(syntax.Caret()))
	}
	return exitCode(err)
}

// withNames is an error's text. A file's name in it cannot make lines or columns of its
// own, be it the error's or a part of an argument: a path's element, a flag's value.
func withNames(err error, args []string) string {
	text := err.Error()
	var path *fs.PathError
	if errors.As(err, &path) && path.Path != "" {
		text = strings.ReplaceAll(text, path.Path, printable.Name(path.Path))
	}
	for _, arg := range args {
		for _, name := range strings.FieldsFunc(arg, func(r rune) bool { return strings.ContainsRune("/=@", r) }) {
			if strings.TrimSpace(name) != "" {
				text = strings.ReplaceAll(text, name, printable.Name(name))
			}
		}
	}
	return shortLines(text)
}

// shortLines leaves out the middle of each line that is longer than bounded.ErrorLine.
func shortLines(text string) string {
	if len(text) <= bounded.ErrorLine {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if n := len(line) - bounded.ErrorLine; n > 0 {
			const half = bounded.ErrorLine / 2
			head, tail := strings.ToValidUTF8(line[:half], ""), strings.ToValidUTF8(line[len(line)-half:], "")
			lines[i] = fmt.Sprintf("%s … %d bytes … %s", head, n, tail)
		}
	}
	return strings.Join(lines, "\n")
}
