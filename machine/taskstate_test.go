package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "kprobelab/machine"
)

// RunUntil leaves a task in the middle of its call, and Run ends it.
func TestRunUntilLeavesTasksInside(t *testing.T) {
	m := bootGuest(t, &Options{Slice: 50})
	task, err := m.Go("spinner", Invoke("spin", 5000))
	require.NoError(t, err)
	slices := 0
	require.NoError(t, m.RunUntil(func() bool { slices++; return slices > 3 }))
	n, inside, ok := m.TaskSwitches(task.Number())
	require.True(t, ok)
	require.True(t, inside)
	require.Zero(t, n)
	require.False(t, task.Done())
	require.NoError(t, m.Run())
	n, inside, _ = m.TaskSwitches(task.Number())
	require.False(t, inside)
	require.NotZero(t, n)
	_, _, ok = m.TaskSwitches(99)
	require.False(t, ok)
}
