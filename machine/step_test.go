package machine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	. "kprobelab/machine"
)

// Two CPUs run as the caller says, instruction by instruction.
func TestStepLetsTheCallerInterleave(t *testing.T) {
	m := bootGuest(t, &Options{CPUs: 2, EveryInstruction: true})
	for cpu := range 2 {
		task, err := m.Go("task", Invocation{Func: "leaf", Args: []any{uint64(cpu)}})
		require.NoError(t, err)
		require.NoError(t, task.Pin(cpu))
		_, _, ok := m.Running(cpu)
		require.False(t, ok, "it has not begun")
	}
	ran, err := m.Step(1, 1)
	require.NoError(t, err)
	require.True(t, ran)
	_, _, ok := m.Running(0)
	require.False(t, ok, "CPU 0 has not been told to run")
	task, first, ok := m.Running(1)
	require.True(t, ok)
	require.Equal(t, 2, task.Number())

	before := m.Instructions()
	_, err = m.Step(1, 1)
	require.NoError(t, err)
	require.Equal(t, before+1, m.Instructions())
	_, second, _ := m.Running(1)
	require.NotEqual(t, first.IP, second.IP)

	for range 1000 {
		if ran, err = m.Step(1, 1); !ran {
			break
		}
		require.NoError(t, err)
	}
	require.False(t, ran, "its task has ended")
	require.Len(t, m.Tasks()[2].Results(), 1)
	require.Empty(t, m.Tasks()[1].Results())
	require.NoError(t, m.Run())
	require.Len(t, m.Tasks()[1].Results(), 1)
}

func TestStepOfNoCPU(t *testing.T) {
	m := bootGuest(t, nil)
	for _, cpu := range []int{-1, 1} {
		_, err := m.Step(cpu, 1)
		require.ErrorIs(t, err, errno.EINVAL)
		_, _, ok := m.Running(cpu)
		require.False(t, ok)
	}
	m.Close()
	_, err := m.Step(0, 1)
	require.ErrorIs(t, err, ErrClosed)
}
