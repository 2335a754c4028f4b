package main

import (
	"context"
	"fmt"

	"github.com/urfave/cli/v3"
)

// askHelp turns "help COMMAND…", which people know from other programs, into
// "COMMAND… --help", which the parser knows.
func askHelp(args []string) []string {
	n := 1
	for n < len(args) && args[n] == "help" {
		n++
	}
	if n == 1 {
		return args
	}
	return append(append([]string{args[0]}, args[n:]...), "--help")
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
	if err := app.Run(ctx, askHelp(args)); err != nil {
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

// nearest is the command whose name a slip of the keyboard made the given one:
// a third of its letters at most are wrong. Empty for none.
func nearest(commands []*cli.Command, name string) string {
	best, near := 1+len(name)/3, ""
	for _, c := range commands {
		if d := editDistance(c.Name, name); d <= best && (near == "" || d < best) {
			best, near = d, c.Name
		}
	}
	return near
}

// editDistance counts the letters to insert, delete or replace (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
