package tracing

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// Names of tasks are remembered up to the bound. A known task's name may change, and a record of an
// unknown task has no name.
func TestNamesOfManyTasks(t *testing.T) {
	var c comms
	c.init()
	for pid := range bounded.SavedNames + 100 {
		c.save(pid+1, fmt.Sprint("t", pid+1))
	}
	require.Len(t, c.byPID, bounded.SavedNames)
	require.Equal(t, "t32768", c.name(bounded.SavedNames))
	require.Equal(t, "<...>", c.name(bounded.SavedNames+1))
	c.save(1, "init")
	require.Equal(t, "init", c.name(1))
	require.Len(t, c.byPID, bounded.SavedNames)
}
