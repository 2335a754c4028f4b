package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v3"

	"kprobelab/internal/cmdline"
)

// Every command's help fits a screen of 80 columns; only an example, and a line that is set by hand, may be longer.
func TestHelpFitsAScreen(t *testing.T) {
	app := newApp(newTerm(&bytes.Buffer{}, &bytes.Buffer{}))
	cmdline.EveryCommand(app.Command, func(c *cli.Command) {
		t.Run(c.FullName(), func(t *testing.T) {
			for _, all := range []bool{false, true} {
				var b strings.Builder
				app.PrintHelp(&b, c, all)
				if !all && len(c.Commands) == 0 {
					require.LessOrEqual(t, strings.Count(b.String(), "\n"), cmdline.HelpLines, b.String())
				}
				require.Contains(t, b.String(), c.FullName())
				for line := range strings.Lines(b.String()) {
					if !strings.HasPrefix(line, " ") {
						require.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), cmdline.HelpColumns, line)
					}
				}
			}
		})
	})
}

// Every command stands in one group of the help, and nothing else does.
func TestEveryCommandHasAGroup(t *testing.T) {
	var have, grouped []string
	for _, c := range newApp(newTerm(&bytes.Buffer{}, &bytes.Buffer{})).VisibleCommands() {
		have = append(have, c.Name)
	}
	for _, g := range groups {
		grouped = append(grouped, g.Commands...)
	}
	require.ElementsMatch(t, have, grouped)
}

// A file of help is a command's.
func TestEveryHelpFileIsOfACommand(t *testing.T) {
	of := map[string]bool{}
	var walk func(c *cli.Command, name string)
	walk = func(c *cli.Command, name string) {
		of[name+".txt"] = true
		for _, sub := range c.Commands {
			walk(sub, strings.TrimPrefix(name+"-"+sub.Name, "kprobelab-"))
		}
	}
	walk(newApp(newTerm(&bytes.Buffer{}, &bytes.Buffer{})).Command, "kprobelab")
	files, err := helpFiles.ReadDir("help")
	require.NoError(t, err)
	for _, f := range files {
		require.True(t, of[f.Name()] || strings.HasSuffix(f.Name(), ".part"), f.Name())
	}
}

// The manual page has all flags, and nothing of a text is taken for a command of roff's.
func TestManualPage(t *testing.T) {
	var b strings.Builder
	app := newApp(newTerm(&bytes.Buffer{}, &bytes.Buffer{}))
	require.NoError(t, app.WriteMan(&b))
	macros := map[string]bool{".TH": true, ".SH": true, ".SS": true, ".PP": true, ".TP": true, ".nf": true, ".fi": true, ".nh": true}
	for line := range strings.Lines(b.String()) {
		if strings.HasPrefix(line, ".") {
			macro, _, _ := strings.Cut(strings.TrimSpace(line), " ")
			require.True(t, macros[macro], line)
		}
		require.False(t, strings.HasPrefix(line, "'"), line)
	}
	cmdline.EveryCommand(app.Command, func(c *cli.Command) {
		require.Contains(t, b.String(), cmdline.Roff(c.FullName()))
		for _, f := range c.VisibleFlags() {
			require.Contains(t, b.String(), cmdline.Roff(cmdline.FlagName(f)))
		}
	})
}

// The help of the three doors of a run fits 80 columns with its examples.
func TestHelpOfTheDoorsFitsItsColumns(t *testing.T) {
	app := newApp(newTerm(&bytes.Buffer{}, &bytes.Buffer{}))
	for _, name := range []string{"run", "exec", "uprobe"} {
		var b strings.Builder
		app.PrintHelp(&b, app.Command.Command(name), false)
		for line := range strings.Lines(b.String()) {
			require.LessOrEqual(t, len([]rune(strings.TrimSuffix(line, "\n"))), cmdline.HelpColumns, "%s: %s", name, line)
		}
	}
}
