package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "kprobelab/machine"
)

// A WARN is logged, and the code goes on; a BUG is a fault.
func TestWarnGoesOn(t *testing.T) {
	m := bootGuest(t, nil)
	var lines []string
	m.OnLog(func(line string) { lines = append(lines, line) })
	v, err := m.Call("warn_on", 1)
	require.NoError(t, err)
	require.EqualValues(t, 2, v)
	require.Len(t, lines, 1)
	require.Regexp(t, `^WARNING: CPU: 0 PID: 0 at \S*:102 warn_on\+0x`, lines[0])

	_, err = m.Call("bug_on", 1)
	var f *Fault
	require.ErrorAs(t, err, &f)
	require.Equal(t, VectorInvalid, f.Vector)
	require.Len(t, lines, 1)
}
