package cmdline

import (
	"context"
	"io"
	"runtime/debug"

	"github.com/urfave/cli/v3"
)

// App is a program's command line.
type App struct {
	*cli.Command
	// Groups lists the commands by purpose, in the order of the help.
	Groups []Group
	// Programs are the commands whose first operand is a program: what follows it is the program's own.
	Programs []string
	// Permuted are the commands whose tools read their command line with getopt_long: options
	// may follow operands, until two dashes.
	Permuted []string
	// Shells are the completion scripts by shell.
	Shells map[string]string

	// First is printed in place of the help if the command line has no words; "" prints the help.
	First string

	// all is whether the help that is asked for tells all.
	all bool
}

// Group is a list of commands with one purpose.
type Group struct {
	Name     string
	Commands []string
}

// appKey finds the App in the metadata of its command.
const appKey = "cmdline.App"

func init() { cli.HelpPrinter = printHelpOf }

// Prepare sets what all commands have in common. It comes once, when all commands are there.
func (a *App) Prepare() {
	a.Metadata = map[string]any{appKey: a}
	a.Action = func(_ context.Context, c *cli.Command) error {
		if c.Args().Present() {
			return NoCommand(c, c.Args().First())
		}
		if a.First != "" && c.NumFlags() == 0 {
			_, err := io.WriteString(c.Root().Writer, a.First)
			return err
		}
		return cli.ShowAppHelp(c)
	}
	// The program reports errors itself, once.
	a.ExitErrHandler = func(context.Context, *cli.Command, error) {}
	EveryCommand(a.Command, func(c *cli.Command) {
		c.OnUsageError = usageError
		// "%s, %d" is one value of a flag, not two.
		c.DisableSliceFlagSeparator = true
		c.HideHelpCommand = true
	})
}

// EveryCommand calls do with a command and all in it.
func EveryCommand(c *cli.Command, do func(*cli.Command)) {
	do(c)
	for _, sub := range c.Commands {
		EveryCommand(sub, do)
	}
}

// OnlyCommands is the action of a command without work of its own.
func OnlyCommands(_ context.Context, c *cli.Command) error {
	if c.Args().Present() {
		return NoCommand(c, c.Args().First())
	}
	return cli.ShowSubcommandHelp(c)
}

// Version is the module's version, or the commit that it was built from.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return "devel-" + s.Value[:min(12, len(s.Value))]
		}
	}
	return "devel"
}

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
