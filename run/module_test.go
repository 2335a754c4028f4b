package run

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/booted"
	"kprobelab/errno"
)

// TestCountsOfProbes: the counts of a module's probe are words.
func TestCountsOfProbes(t *testing.T) {
	for want, p := range map[string]booted.ModuleProbe{
		"1 hit, 0 missed": {Counted: true, Hits: 1},
		"5 hits, 1 return, 2 missed, 3 without an instance": {Counted: true, Hits: 5, Return: true, Returns: 1, Missed: 2, Exhausted: 3},
		"hits are not counted, 7 missed":                    {Missed: 7},
	} {
		require.Equal(t, want, counts(&p))
	}
	require.Equal(t, "return probe", kindOf(&booted.ModuleProbe{Return: true, Errno: errno.EINVAL}))
}
