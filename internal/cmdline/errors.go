package cmdline

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/spelling"
)

// Failure is an error with its exit code.
type Failure struct {
	Code int
	Err  error
}

// Error implements error.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the error without the code.
func (f *Failure) Unwrap() error { return f.Err }

// Fail gives an error its exit code.
func Fail(code int, err error) error { return &Failure{code, err} }

// ErrSaid is a failure that has been reported already.
var ErrSaid = errors.New("")

// ExitUsage is the exit code of a wrong command line.
const ExitUsage = 2

// Usagef returns an error of the command line.
func Usagef(format string, args ...any) error { return Fail(ExitUsage, fmt.Errorf(format, args...)) }

// usageError says in one line what is wrong, and names the help. The parser
// reads the flags of a command that does not exist as its parent's: then the
// error is about the command's name.
func usageError(_ context.Context, c *cli.Command, err error, _ bool) error {
	if name := c.Args().First(); name != "" && len(c.Commands) > 0 && (c.ArgsUsage == "" || IsSlip(c, name)) {
		return NoCommand(c, name)
	}
	flag, unknown := strings.CutPrefix(err.Error(), noFlag)
	if near := nearestFlag(c, flag); unknown && near != "" {
		return Usagef("%s; did you mean %s?", plain(err), Dashed(near))
	}
	return Usagef("%s; try %s --help", plain(err), c.FullName())
}

// noFlag is the begin of the parser's message about a flag that does not exist.
const noFlag = "flag provided but not defined: "

// plain puts the parser's messages into plain words.
func plain(err error) string {
	s := err.Error()
	if flag, ok := strings.CutPrefix(s, noFlag); ok {
		return "there is no flag " + Dashed(strings.TrimLeft(flag, "-"))
	}
	if flag, ok := strings.CutPrefix(s, "flag needs an argument: "); ok {
		return flag + " needs a value"
	}
	return valueError(s)
}

// invalidValue matches the parser's message about a flag whose Set has failed.
var invalidValue = regexp.MustCompile(`(?s)^invalid value "(.*)" for flag (\S+): (.*)$`)

// valueError keeps the errors of the program's own flags, and puts the parser's errors
// about numbers and times into plain words.
func valueError(s string) string {
	m := invalidValue.FindStringSubmatch(s)
	switch {
	case m == nil:
		return s
	case strings.HasPrefix(m[3], "strconv."):
		return fmt.Sprintf("%s: %q is not a number in its range", Dashed(strings.TrimLeft(m[2], "-")), m[1])
	case strings.HasPrefix(m[3], "time: "):
		return fmt.Sprintf("%s: %q is not a time, such as 500ms or 10s", Dashed(strings.TrimLeft(m[2], "-")), m[1])
	}
	return m[3]
}

// NoCommand is the error for a command's name that is wrong, with the one that
// may have been meant.
func NoCommand(c *cli.Command, name string) error {
	hint := fmt.Sprintf("try %s --help", c.FullName())
	if near := nearest(c, name); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return Usagef("there is no command %q; %s", name, hint)
}

// IsSlip reports whether a word is nearly the name of a command in c.
func IsSlip(c *cli.Command, word string) bool { return nearest(c, word) != "" }

// nearest is the command that may have been meant, "" for none.
func nearest(c *cli.Command, name string) string {
	var names []string
	for _, sub := range c.VisibleCommands() {
		names = append(names, sub.Name)
	}
	return spelling.Nearest(slices.Values(names), name)
}

// nearestFlag is the flag of a command that may have been meant, "" for none.
func nearestFlag(c *cli.Command, name string) string {
	var names []string
	for _, f := range c.VisibleFlags() {
		names = append(names, f.Names()...)
	}
	return spelling.Nearest(slices.Values(names), strings.TrimLeft(name, "-"))
}
