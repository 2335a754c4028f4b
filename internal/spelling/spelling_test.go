package spelling

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNearest(t *testing.T) {
	names := []string{"run", "scan", "symbols", "selfcheck", "vfs_read", "vfs_write", "vfs_readv"}
	for name, want := range map[string]string{
		"symbol": "symbols", "sybols": "symbols", "sacn": "scan", "vfs_raed": "vfs_read", "vfs_red": "vfs_read", "vfs_reav": "vfs_read",
		"nosuch": "", "x": "", "": "", "selfchk": "selfcheck", "vfs_write": "vfs_write",
	} {
		require.Equal(t, want, Nearest(slices.Values(names), name), name)
	}
	require.Empty(t, Nearest(slices.Values([]string{"", ""}), "a"))
}

// A distance is one: none to itself, the same both ways, no detour is shorter.
func TestDistanceIsAMetric(t *testing.T) {
	d := func(a, b string) int {
		n, _ := distance(a, b, nil)
		return n
	}
	word := rapid.StringMatching("[abc]{0,6}")
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		require.Equal(t, a == b, d(a, b) == 0)
		require.Equal(t, d(a, b), d(b, a))
		require.LessOrEqual(t, d(a, c), d(a, b)+d(b, c))
	})
}
