package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v3"
)

// Every command that a page, a help text, a script or the Makefile shows is one of the program's, and so are its flags.
func TestCommandsOfPagesAndScriptsExist(t *testing.T) {
	t.Chdir("../..")
	app := newApp(newTerm(io.Discard, io.Discard))
	n := 0
	for _, file := range files(t, "README.md", "RATIONALE.md", "CONTRIBUTING.md", "POLICY.md", "docs/*.md", "docs/measured/*.md", "ci/*", "cmd/kprobelab/help/*", "scripts/*.sh", "Makefile") {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, words := range shownCommands(string(text)) {
			command, rest := commandOf(app.Command, words)
			if words[0] == "film" { // a file's first line, in docs/film.md
				continue
			}
			if !assert.NotNil(t, command, "%s: kprobelab %s is no command", file, words[0]) {
				continue
			}
			n++
			for _, flag := range flagsShown(rest, slices.Contains(app.Programs, command.Name)) {
				assert.True(t, hasFlag(command, flag), "%s: kprobelab %s has no flag %s", file, command.Name, flag)
			}
		}
	}
	require.Greater(t, n, 400)
}

// files lists the files of patterns, all of which have to match one.
func files(t *testing.T, patterns ...string) (list []string) {
	for _, pattern := range patterns {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, found, pattern)
		for _, f := range found {
			if st, err := os.Stat(f); err == nil && st.Mode().IsRegular() {
				list = append(list, f)
			}
		}
	}
	return list
}

// commandLines find the program in a line that is code: indented, in backquotes, after a prompt or an operator of a shell; and by
// its variable in scripts.
var commandLines = []*regexp.Regexp{
	regexp.MustCompile("(?m)(?:^(?:   +|\t+)(?:\\$ |@|[A-Z_]+=\\S+ )*|`|\\| |&& |; |\\$\\()(?:\\./)?(?:bin/)?kprobelab ([a-z][^`\n]*)"),
	regexp.MustCompile("\"\\$\\{?kprobelab\\}?\" ([a-z][^\n]*)"),
}

// shownCommands returns the words after the program's name, for each line that runs it.
func shownCommands(text string) (list [][]string) {
	text = strings.ReplaceAll(text, "\\\n", " ")
	for _, line := range commandLines {
		for _, m := range line.FindAllStringSubmatch(text, -1) {
			list = append(list, strings.Fields(m[1]))
		}
	}
	return list
}

// commandOf finds the command, and the subcommand if there is one; nil if there is no such command.
func commandOf(root *cli.Command, words []string) (*cli.Command, []string) {
	command := root
	for len(words) > 0 {
		i := slices.IndexFunc(command.Commands, func(c *cli.Command) bool { return c.HasName(words[0]) })
		if i < 0 {
			break
		}
		command, words = command.Commands[i], words[1:]
	}
	if command == root {
		return nil, words
	}
	return command, words
}

// flagsShown returns the flags of a line, up to the end of its command; up to the first operand if a program's line follows.
func flagsShown(words []string, program bool) (list []string) {
	quoted := false
	for _, w := range words {
		inside := quoted
		if strings.Count(w, "'")%2 == 1 || strings.Count(w, `"`)%2 == 1 {
			quoted = !quoted
		}
		switch {
		case inside:
		case w == "--" || w == "|" || w == "#" || w == "&&" || w == "||" || w == ">" || program && strings.ContainsAny(w[:1], "/."):
			return list
		case strings.HasPrefix(w, "--"):
			name, _, _ := strings.Cut(w, "=")
			list = append(list, strings.TrimRight(name, ",.;:)'\"}"))
		}
	}
	return list
}

func hasFlag(c *cli.Command, flag string) bool {
	name := strings.TrimPrefix(flag, "--")
	if name == "help" || name == "all" {
		return true
	}
	for _, c := range c.Lineage() {
		if slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) }) {
			return true
		}
	}
	return false
}
