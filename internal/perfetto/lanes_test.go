package perfetto

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each lane has a track, and a step ends before the next begins.
func TestLanes(t *testing.T) {
	var b strings.Builder
	require.NoError(t, WriteLanes(&b, "s", "c", true, []LaneStep{{Lane: "CPU 0", Name: "a", Number: 1}, {Lane: "CPU 1", Name: "b", Number: 2}, {Lane: "CPU 0", Name: "d", Number: 3}}))
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Len(t, lines, 6)
	require.Equal(t, `{"time_ns":1000,"kind":"begin","cpu":0,"pid":1,"comm":"CPU 0","group":"c","event":"a"}`, lines[0])
	require.Equal(t, `{"time_ns":1999,"kind":"end","cpu":0,"pid":1,"comm":"CPU 0","group":"c","event":"a"}`, lines[1])
	require.Contains(t, lines[2], `"pid":2,"comm":"CPU 1"`)
	require.Contains(t, lines[4], `"pid":1,"comm":"CPU 0"`)
	require.NoError(t, WriteLanes(&b, "s", "c", false, []LaneStep{{Lane: "l", Name: "a"}}))
}
