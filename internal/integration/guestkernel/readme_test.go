package guestkernel

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
)

// TestReadmeNamesFunctions compares README.md with the files: the names in a table's first column
// exist.
func TestReadmeNamesFunctions(t *testing.T) {
	b, err := os.ReadFile("../../../testdata/README.md")
	require.NoError(t, err)
	kernel, module := open(t, kprobelab.GuestELF()), open(t, kprobelab.GuestModule())
	code := regexp.MustCompile("`([a-zA-Z_][a-zA-Z0-9_.]*)")
	n := 0
	for _, line := range strings.Split(string(b), "\n") {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		first, _, _ := strings.Cut(line[2:], " | ")
		for _, m := range code.FindAllStringSubmatch(first, -1) {
			n++
			require.True(t, kernel.syms[m[1]] != nil || module.syms[m[1]] != nil, m[1])
		}
	}
	require.Greater(t, n, 150)
}
