package kprobelab

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/machine"
	"kprobelab/watch"
	"kprobelab/watch/registers"
)

// Watchpoints take the debug registers, and give them back.
func TestWatchpointsTakeRegisters(t *testing.T) {
	l, err := Open("", &Options{CPUs: 2})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	l.Watches.Registers = l.Registers()
	taken := func() int { return len(l.Watches.Registers.All()) }

	var list []*watch.Watchpoint
	for range registers.Count {
		w, err := l.Watch("last_pid:4:w", nil)
		require.NoError(t, err)
		list = append(list, w.Watchpoint)
	}
	require.Equal(t, 2*registers.Count, taken(), "one on each CPU")
	_, err = l.Watch("last_pid:4:w", nil)
	require.ErrorIs(t, err, errno.ENOSPC)
	var r *registers.Refusal
	require.ErrorAs(t, err, &r)
	require.Equal(t, registers.NoRegister, r.Rule)

	require.NoError(t, l.Watches.Remove(list[0]))
	ofTask := func(task, cpu int) *watch.Watchpoint {
		return &watch.Watchpoint{Addr: list[0].Addr, Len: 4, Kinds: machine.WatchWrite, Task: task, CPU: cpu}
	}
	one, other, third := ofTask(1, watch.Any), ofTask(2, 0), ofTask(1, 1)
	require.NoError(t, l.Watches.Add(one))
	require.NoError(t, l.Watches.Add(other), "another task's")
	require.ErrorIs(t, l.Watches.Add(third), errno.ENOSPC)
	require.NoError(t, l.Watches.Remove(one))
	require.NoError(t, l.Watches.Add(third))

	for _, w := range l.Watches.All() {
		require.NoError(t, l.Watches.Remove(w))
	}
	require.Zero(t, taken())
	_, err = l.Watch("last_pid:4:r", nil)
	require.ErrorIs(t, err, errno.EINVAL)
	require.Zero(t, taken(), "one that is refused")
}

// A machine that takes no watchpoint leaves its register free.
func TestARegisterIsGivenUpWhereTheMachineRefuses(t *testing.T) {
	l, err := Open("", nil)
	require.NoError(t, err)
	l.Watches.Registers = l.Registers()
	l.Close()
	_, err = l.Watch("last_pid:4:w", nil)
	require.Error(t, err)
	require.Empty(t, l.Watches.Registers.All())
}
