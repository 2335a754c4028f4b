package evidence

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWhoDecides: the image's own answer goes before its symbols and data, these before its
// configuration, that before the release; what is not followed is kept.
func TestWhoDecides(t *testing.T) {
	all := []Witness{
		{"release", "6.1", Dated}, {"option", "config", Configured}, {"absent", "no symbol x", Absent},
		{"symbol", "x", Symbolic}, {"code", "bytes", Coded}, {"answer", "can_probe", Measured},
	}
	for n, want := range []string{"release", "option", "option", "symbol", "symbol", "answer"} {
		first, against, ok := best(all[:n+1])
		require.True(t, ok)
		require.Equal(t, want, first.Value)
		require.Len(t, against, []int{0, 1, 1, 2, 3, 4}[n], "a weak symbol that is absent disputes nothing")
	}
	_, _, ok := best(nil)
	require.False(t, ok)
	f, ok := Decided("HZ", []Witness{{"250", "config", Configured}, {"250", "clocksource_jiffies", Coded}})
	require.True(t, ok)
	require.Equal(t, Fact{Name: "HZ", Value: "250", Evidence: "clocksource_jiffies", From: Coded}, f)
	require.Equal(t, f.From.place(), Coded.place())
}
