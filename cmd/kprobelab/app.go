package main

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/engine"
)

// newApp builds the command line.
func newApp(t *term) *cli.Command {
	app := &cli.Command{
		Name:        "kprobelab",
		Usage:       "plant kernel probes in real kernel code, without root",
		Description: described("kprobelab"),
		Version:     version(),
		Writer:      t.out,
		ErrWriter:   t.err,
		Commands: []*cli.Command{
			runCommand(t), execCommand(t), uprobeCommand(t), serveCommand(t), bootCommand(t), mountCommand(t), probeCommand(t), stapCommand(t), bpftraceCommand(t), sampleCommand(t), exploreCommand(t), benchCommand(t), explainCommand(t), scanCommand(t), selfcheckCommand(t), hazardsCommand(t), symbolsCommand(t), infoCommand(t), decodeCommand(t),
			checkCommand(t), packCommand(t), kernelsCommand(t), completionCommand(t), manCommand(t), versionCommand(t),
		},
		Action: func(_ context.Context, c *cli.Command) error {
			if c.Args().Present() {
				return noCommand(c, c.Args().First())
			}
			return cli.ShowAppHelp(c)
		},
		// The program reports errors itself, once, in exit.go.
		ExitErrHandler: func(context.Context, *cli.Command, error) {},
	}
	everyCommand(app, func(c *cli.Command) {
		c.OnUsageError = usageError
		// "%s, %d" is one value of a flag, not two.
		c.DisableSliceFlagSeparator = true
		c.HideHelpCommand = true
	})
	for _, c := range app.Commands {
		limited(t, c)
	}
	return app
}

func everyCommand(c *cli.Command, do func(*cli.Command)) {
	do(c)
	for _, sub := range c.Commands {
		everyCommand(sub, do)
	}
}

// usageError says in one line what is wrong, and names the help. The parser
// reads the flags of a command that does not exist as its parent's: then the
// error is about the command's name.
func usageError(_ context.Context, c *cli.Command, err error, _ bool) error {
	if name := c.Args().First(); name != "" && len(c.Commands) > 0 && (c.ArgsUsage == "" || nearest(c.VisibleCommands(), name) != "") {
		return noCommand(c, name)
	}
	flag, unknown := strings.CutPrefix(err.Error(), noFlag)
	if near := nearestFlag(c, flag); unknown && near != "" {
		return usagef("%s; did you mean %s?", plain(err), dashes(near))
	}
	return usagef("%s; try %s --help", plain(err), c.FullName())
}

// noFlag is the begin of the parser's message about a flag that does not exist.
const noFlag = "flag provided but not defined: "

// plain puts the parser's messages into the words of this program.
func plain(err error) string {
	s := err.Error()
	if flag, ok := strings.CutPrefix(s, noFlag); ok {
		return "there is no flag " + dashes(flag)
	}
	if flag, ok := strings.CutPrefix(s, "flag needs an argument: "); ok {
		return flag + " needs a value"
	}
	return valueError(s)
}

// invalidValue matches the parser's message about a flag whose Set has failed.
var invalidValue = regexp.MustCompile(`(?s)^invalid value "(.*)" for flag (\S+): (.*)$`)

// valueError keeps the errors of this program's own flags, and puts the parser's errors
// about numbers and times into plain words.
func valueError(s string) string {
	m := invalidValue.FindStringSubmatch(s)
	switch {
	case m == nil:
		return s
	case strings.HasPrefix(m[3], "strconv."):
		return fmt.Sprintf("%s: %q is not a number in its range", dashes(m[2]), m[1])
	case strings.HasPrefix(m[3], "time: "):
		return fmt.Sprintf("%s: %q is not a time, such as 500ms or 10s", dashes(m[2]), m[1])
	}
	return m[3]
}

// dashes writes a flag's name with its dashes, one before a letter; the parser writes one at
// most.
func dashes(flag string) string {
	name := strings.TrimLeft(flag, "-")
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func versionCommand(t *term) *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version of the program and of its engine",
		Action: func(_ context.Context, c *cli.Command) error {
			if err := atMost(c, 0); err != nil {
				return err
			}
			_, err := fmt.Fprintf(t.out, "kprobelab %s, %s\n", version(), "engine "+engine.Version())
			return err
		},
	}
}
