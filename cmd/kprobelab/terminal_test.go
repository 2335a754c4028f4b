package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNamesDoNotReachTheTerminalRaw: what a file, its name or an argument says
// does not act on a terminal, and forges no line of a table or of an error.
func TestNamesDoNotReachTheTerminalRaw(t *testing.T) {
	dir := t.TempDir()
	guest, err := os.ReadFile("../../testdata/guest.elf")
	require.NoError(t, err)
	evil := filepath.Join(dir, "evil\x1b[2J\nforged\tline")
	require.NoError(t, os.WriteFile(evil, bytes.ReplaceAll(guest, []byte("snprintf\x00"), []byte("s\x1b[2J\t\nf\x00")), 0o600))
	symbols := filepath.Join(dir, "map")
	require.NoError(t, os.WriteFile(symbols, []byte("ffffffff81000000 T _stext\nffffffff81000010 T ev\x1bil\rname\n"), 0o600))
	for _, args := range [][]string{
		{"info", evil}, {"symbols", evil}, {"symbols", "--tsv", evil}, {"symbols", "--json", evil}, {"scan", "--tsv", evil}, {"scan", evil}, {"symbols", "--tsv", "--symbols", symbols, "-"},
		{"info", evil + "x"}, {"info", filepath.Join(dir, "map")}, {"run", "--call", "\x1b[31m(1)"}, {"nosuch\x1b[31m"}, {"info", "--\x1b[31m"}, {"explain", evil, "\x1b[1mx"},
	} {
		var out, errs bytes.Buffer
		execute(append([]string{"kprobelab"}, args...), &out, &errs)
		for _, text := range []string{out.String(), errs.String()} {
			require.NotContains(t, text, "\x1b", "%q", args)
			require.NotContains(t, text, "\r", "%q", args)
			require.NotContains(t, text, "\nforged", "%q", args)
		}
		if strings.Contains(strings.Join(args, " "), "--tsv") {
			lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
			for _, line := range lines {
				require.Equal(t, strings.Count(lines[0], "\t"), strings.Count(line, "\t"), "%q: %q", args, line)
			}
		}
	}
}
