package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"kprobelab/kprobes/rule"

	"github.com/stretchr/testify/require"
)

// docs/optimization.md shows the program's output.
func TestOptimizationIsDocumentedAsItPrints(t *testing.T) {
	doc, err := os.ReadFile("../../docs/optimization.md")
	require.NoError(t, err)
	n := 0
	for _, s := range sessions(string(doc)) {
		n++
		var out bytes.Buffer
		execute(append([]string{"kprobelab"}, strings.Fields(s.command)...), &out, &out)
		requireShown(t, s, out.String())
	}
	require.GreaterOrEqual(t, n, 3)
	for _, id := range rule.Of(rule.Optimization) {
		require.Contains(t, string(doc), "| `"+id.String()+"` |")
	}
}

// shell is a command with its output, as a document shows it. A line of three
// dots stands for lines that are left out, also at the start and the end.
type shell struct {
	command, output string
	cut             bool
}

// requireShown compares the output in a document with the command's output.
func requireShown(t *testing.T, s shell, printed string) {
	rest := masked(strings.TrimRight(printed, "\n"))
	output, begun := strings.CutPrefix(s.output, "...\n")
	for i, part := range strings.Split(output, "\n...\n") {
		before, after, found := strings.Cut(rest, masked(part))
		require.True(t, found, "%s does not print:\n%s\nbut:\n%s", s.command, part, printed)
		if i == 0 && !begun {
			require.Empty(t, before, s.command)
		}
		rest = after
	}
	if !s.cut {
		require.Empty(t, strings.TrimRight(rest, "\n"), s.command)
	}
}

// sessions finds the commands in a document's indented blocks.
func sessions(doc string) (list []shell) {
	for _, part := range strings.Split(doc, "\n    $ kprobelab ")[1:] {
		lines := strings.Split(part, "\n")
		var out []string
		for _, l := range lines[1:] {
			text, indented := strings.CutPrefix(l, "    ")
			if !indented && l != "" || strings.HasPrefix(text, "== ") { // a heading of make demo
				break
			}
			out = append(out, text)
		}
		output := strings.TrimRight(strings.Join(out, "\n"), "\n")
		output, cut := strings.CutSuffix(output, "\n...")
		list = append(list, shell{lines[0], strings.TrimRight(output, "\n"), cut})
	}
	return list
}
