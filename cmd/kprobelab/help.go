package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/spelling"
)

// askHelp turns "help COMMAND…", which people know from other programs, into
// "COMMAND… --help", which the parser knows; all is of "help --all COMMAND…".
func askHelp(args []string) (asked []string, all bool) {
	n := 1
	for n < len(args) && args[n] == "help" {
		n++
	}
	if n == 1 {
		return args, false
	}
	rest := args[n:]
	if len(rest) > 0 && rest[0] == helpAll {
		rest, all = rest[1:], true
	}
	return append(append([]string{args[0]}, rest...), "--help"), all
}

// runApp runs a command line. Where the parser finds no help topic of a name,
// the name may be an argument: a command without commands of its own then
// prints its help. Otherwise the name is wrong.
func runApp(ctx context.Context, app *cli.Command, args []string) error {
	var wrong error
	var parentOf func(parent *cli.Command)
	parentOf = func(parent *cli.Command) {
		for _, c := range parent.Commands {
			c.CommandNotFound = func(ctx context.Context, c *cli.Command, name string) {
				if len(c.Commands) > 0 && c.ArgsUsage == "" {
					wrong = noCommand(c, name)
					return
				}
				wrong = cli.ShowCommandHelp(ctx, parent, c.Name)
			}
			parentOf(c)
		}
	}
	parentOf(app)
	app.CommandNotFound = func(_ context.Context, c *cli.Command, name string) { wrong = noCommand(c, name) }
	asked, all := askHelp(args)
	cli.HelpPrinter = func(w io.Writer, _ string, data any) {
		if c, ok := data.(*cli.Command); ok {
			printHelp(w, c, all)
		}
	}
	if err := app.Run(ctx, asked); err != nil {
		return err
	}
	return wrong
}

// noCommand is the error for a command's name that is wrong, with the one that
// may have been meant.
func noCommand(c *cli.Command, name string) error {
	hint := fmt.Sprintf("try %s --help", c.FullName())
	if near := nearest(c.VisibleCommands(), name); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return usagef("there is no command %q; %s", name, hint)
}

// nearest is the command that may have been meant, "" for none.
func nearest(commands []*cli.Command, name string) string {
	var names []string
	for _, c := range commands {
		names = append(names, c.Name)
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
