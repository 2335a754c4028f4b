package registers

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The table of docs/watch.md has each check of perf_event_open, in the kernel's order, with its errno.
func TestPageOfWatchpointsHasTheChecks(t *testing.T) {
	page, err := os.ReadFile("../../docs/watch.md")
	require.NoError(t, err)
	var shown []string
	for _, row := range regexp.MustCompile("(?m)^\\| .* \\| (E[A-Z0-9]+)[^|]*\\| `([A-Z0-9_]+)` \\|$").FindAllSubmatch(page, -1) {
		shown = append(shown, string(row[2])+" "+string(row[1]))
	}
	var checks []string
	for _, c := range slices.Concat(before, slots, parse, after) {
		checks = append(checks, string(c.rule)+" "+c.errno.Name())
	}
	for _, r := range []*Refusal{{NoDebugReg, notInUser.Errno, ""}, notInUser} {
		checks = append(checks, string(r.Rule)+" "+r.Errno.Name())
	}
	require.Equal(t, checks, shown)
}
