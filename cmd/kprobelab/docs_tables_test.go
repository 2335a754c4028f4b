package main

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/urfave/cli/v3"

	"kprobelab/internal/integration/pages"
)

// Every flag that a table of a page names for a command is one of the command's. A table that is whole has all flags of the
// command, except the flags of nearly every command.
func TestTablesOfPagesHaveTheFlags(t *testing.T) {
	app := newApp(newTerm(io.Discard, io.Discard))
	for _, c := range []struct {
		page, heading string
		n             int
		command       string
		whole         bool
	}{
		{page: "archive.md", heading: "What check says of many kernels", command: "check"},
		{page: "bpftrace.md", heading: "bpftrace scripts", command: "bpftrace", whole: true},
		{page: "check.md", heading: "As a gate", command: "check"},
		{page: "exec.md", heading: "As in production", command: "exec"},
		{page: "exec.md", heading: "Probes meanwhile", command: "exec"},
		{page: "exec.md", heading: "On several kernels", command: "exec"},
		{page: "kernels.md", heading: "The same kernels tomorrow", command: "exec"},
		{page: "source.md", heading: "Probes in the words of the source", command: "probe"},
		{page: "stap.md", heading: "SystemTap scripts", command: "stap", whole: true},
	} {
		command, _ := commandOf(app.Command, strings.Fields(c.command))
		require.NotNil(t, command, c.command)
		table := pages.Of(t, c.page, c.heading, c.n)
		page := flagsOf(strings.Join(table.Column(0), "\n"))
		if c.whole {
			shown := append(flagsOf(strings.Join(table.Column(1), "\n")), page...)
			for _, f := range command.VisibleFlags() {
				if names := dashed(f); !shared(app.Command, f) && !slices.ContainsFunc(names, func(n string) bool { return slices.Contains(shown, n) }) {
					t.Errorf("%s: write a row for %s", table.Where, strings.Join(names, ", "))
				}
			}
		}
		for _, name := range page {
			if !slices.ContainsFunc(command.Flags, func(f cli.Flag) bool { return slices.Contains(dashed(f), name) }) {
				t.Errorf("%s: %s has no flag %s: take it out, or write the flag's name", table.Where, c.command, name)
			}
		}
	}
}

// The page of a command names each flag that the command shares with few others.
func TestPagesNameTheFlagsOfTheirCommand(t *testing.T) {
	app := newApp(newTerm(io.Discard, io.Discard))
	for command, list := range map[string][]string{
		"bpf": {"load.md", "losses.md"}, "boot": {"dumps.md"}, "check": {"check.md", "archive.md"}, "exec": {"exec.md", "losses.md", "modules.md", "uprobes.md"}, "explore": {"explore.md"}, "hazards": {"hazards.md"},
		"mount": {"tracing.md"}, "pack": {"archive.md"}, "probe": {"source.md"}, "scan": {"optimization.md", "decoder.md", "selfcheck.md", "hazards.md"}, "selfcheck": {"selfcheck.md"}, "uprobe": {"uprobes.md"},
	} {
		c, _ := commandOf(app.Command, []string{command})
		require.NotNil(t, c, command)
		text := ""
		for _, page := range list {
			text += pages.Read(t, page)
		}
		for _, f := range c.VisibleFlags() {
			if !shared(app.Command, f) && !slices.ContainsFunc(dashed(f), func(n string) bool { return regexp.MustCompile(regexp.QuoteMeta(n) + `\b`).MatchString(text) }) {
				t.Errorf("docs/%s does not name %s of %s", list[0], strings.Join(dashed(f), ", "), command)
			}
		}
	}
}

var flagWord = regexp.MustCompile("`(--?[A-Za-z][a-z-]*)")

// flagsOf returns the flags of a cell, each at the beginning of words in backquotes.
func flagsOf(cell string) (list []string) {
	for _, m := range flagWord.FindAllStringSubmatch(cell, -1) {
		list = append(list, m[1])
	}
	return list
}

// dashed returns the names of a flag as they are typed.
func dashed(f cli.Flag) (list []string) {
	for _, name := range f.Names() {
		list = append(list, "--"[:min(2, len(name))]+name)
	}
	return list
}

// shared reports whether at least five commands have a flag.
func shared(app *cli.Command, f cli.Flag) bool {
	n := 0
	for _, c := range app.Commands {
		if slices.ContainsFunc(c.Flags, func(o cli.Flag) bool { return o.Names()[0] == f.Names()[0] }) {
			n++
		}
	}
	return n >= 5
}

// docs/decoder.md has a row for each value of --decoder.
func TestPageOfDecodersHasTheReaders(t *testing.T) {
	var values []string
	for _, d := range decoders {
		values = append(values, d.Value)
	}
	table := pages.Of(t, "decoder.md", "Which decoder decides", 0)
	pages.Same(t, table.Where, values, table.Names(0))
}

// The tables of commands have a row for each: the subcommands of kernels, the samples, the commands with --shard.
func TestTablesOfPagesHaveTheCommands(t *testing.T) {
	app := newApp(newTerm(io.Discard, io.Discard))
	names := func(of *cli.Command, before string) (list []string) {
		for _, c := range of.Commands {
			if len(c.Commands) == 0 && !c.Hidden && c.Name != "help" {
				list = append(list, before+c.Name)
			}
		}
		return list
	}
	command := func(words ...string) *cli.Command {
		c, _ := commandOf(app.Command, words)
		require.NotNil(t, c, words)
		return c
	}
	first := regexp.MustCompile(`^[a-z]+( [a-z]+)*`)

	table := pages.Of(t, "kernels.md", "Kernels: fetched, added, carried", 0)
	var shown []string
	for _, name := range table.Names(0) {
		shown = append(shown, first.FindString(name))
	}
	pages.Same(t, table.Where, names(command("kernels"), "kernels "), shown)

	table = pages.Of(t, "samples.md", "The sample modules", 0)
	pages.Same(t, table.Where, append(names(command("sample"), "sample "), names(command("sample", "article"), "sample article ")...), table.Names(0))

	table = pages.Of(t, "ci.md", "On several machines", 0)
	var shards []string
	for _, c := range app.Commands {
		if slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), "shard") }) {
			shards = append(shards, c.Name)
		}
	}
	shown = nil
	for _, name := range table.Names(0) {
		if name = first.FindString(name); !strings.HasPrefix(name, "make ") {
			shown = append(shown, name)
		}
	}
	pages.Same(t, table.Where, shards, shown)
}
