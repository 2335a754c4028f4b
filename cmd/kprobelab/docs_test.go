package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What docs/samples.md shows is what the program prints, but for addresses and
// times, which are the guest kernel's compiler's affair.
func TestSamplesAreDocumentedAsTheyPrint(t *testing.T) {
	if engineMissing != nil {
		t.Skip("this build has no engine")
	}
	doc, err := os.ReadFile("../../docs/samples.md")
	require.NoError(t, err)
	sessions := 0
	for block := range strings.SplitSeq(string(doc), "\n\n") {
		command, want, ok := strings.Cut(unindent(block), "\n")
		if args, is := strings.CutPrefix(command, "$ kprobelab "); ok && is {
			sessions++
			var out bytes.Buffer
			run(append([]string{"kprobelab"}, strings.Fields(args)...), &out, &out)
			require.Equal(t, masked(want), masked(strings.TrimSuffix(out.String(), "\n")), args)
		}
	}
	require.Greater(t, sessions, 10)
}

// unindent takes the four columns away that make a block code.
func unindent(block string) string {
	lines := strings.Split(strings.TrimRight(block, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimPrefix(l, "    ")
	}
	return strings.Join(lines, "\n")
}

func masked(text string) string {
	return duration.ReplaceAllString(address.ReplaceAllString(text, "ADDRESS"), "N ns")
}
