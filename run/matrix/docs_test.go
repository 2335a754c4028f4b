package matrix

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/pages"
)

// docs/exec.md names each key of the JSON of several kernels.
func TestPageOfExecHasTheKeysOfTheMatrix(t *testing.T) {
	table := pages.Of(t, "exec.md", "On several kernels", 0)
	i := slices.IndexFunc(table.Rows, func(row []string) bool { return row[0] == "`--json`" })
	require.GreaterOrEqual(t, i, 0, table.Where)
	var want []string
	for _, key := range append(pages.Keys(document{}), pages.Keys(record{})...) {
		if key != "stdout_hex" && key != "stderr_hex" { // the page has _hex for both
			want = append(want, key)
		}
	}
	shown := slices.DeleteFunc(pages.Quoted(table.Rows[i][1]), func(s string) bool { return s == "_hex" || strings.HasPrefix(s, "--") })
	pages.Same(t, table.Where+", --json", want, shown)
}
