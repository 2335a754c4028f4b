package registers

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/pages"
)

// The table of docs/watch.md has each check of perf_event_open, in the kernel's order, with its errno.
func TestPageOfWatchpointsHasTheChecks(t *testing.T) {
	table := pages.Of(t, "watch.md", "The four debug registers", 0)
	var shown []string
	for _, row := range table.Rows {
		shown = append(shown, strings.Trim(row[2], "`")+" "+row[1])
	}
	var checks []string
	for _, c := range slices.Concat(before, slots, parse, after) {
		checks = append(checks, string(c.rule)+" "+c.errno.Name())
	}
	for _, r := range []*Refusal{{NoDebugReg, notInUser.Errno, ""}, notInUser} {
		checks = append(checks, string(r.Rule)+" "+r.Errno.Name())
	}
	pages.Same(t, table.Where, checks, shown)
	require.Equal(t, checks, shown, "%s: the rows are in the kernel's order", table.Where)
}
