package cmdline

import (
	"context"

	"github.com/urfave/cli/v3"
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

// Run runs a command line. Where the parser finds no help topic of a name,
// the name may be an argument: a command without commands of its own then
// prints its help. Otherwise the name is wrong.
func (a *App) Run(ctx context.Context, args []string) error {
	var wrong error
	EveryCommand(a.Command, func(parent *cli.Command) {
		for _, c := range parent.Commands {
			c.CommandNotFound = func(ctx context.Context, c *cli.Command, name string) {
				if len(c.Commands) > 0 && c.ArgsUsage == "" {
					wrong = NoCommand(c, name)
					return
				}
				wrong = cli.ShowCommandHelp(ctx, parent, c.Name)
			}
		}
	})
	a.CommandNotFound = func(_ context.Context, c *cli.Command, name string) { wrong = NoCommand(c, name) }
	args, a.all = askHelp(a.programLast(args))
	if err := a.Command.Run(ctx, args); err != nil {
		return err
	}
	return wrong
}
