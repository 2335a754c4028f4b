package running

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/internal/integration/dumps"
	"kprobelab/machine"
)

func TestCallsAsAnotherTask(t *testing.T) {
	each(t, func(t *testing.T, k *kernel) {
		require.NoError(t, k.As("kthreadd"))
		_, err := k.SystemCall("getpid")
		require.ErrorIs(t, err, booted.ErrTask)
		for range 2 {
			v, err := k.Call("int_sqrt", 81)
			require.NoError(t, err)
			require.EqualValues(t, 9, v)
			_, err = k.Call("msleep", 5)
			require.NoError(t, err)
		}
		require.Equal(t, ended{0, "init again\n", ""}, k.shell("echo init again"))

		k.restore()
		pid, err := k.SystemCall("getpid")
		require.NoError(t, err)
		require.EqualValues(t, 1, pid, "a restored machine stands in init")
	})
}

// Init has run a program with a real-time priority; a task that is woken afterwards gets the
// CPU all the same, and the next program's output is in order.
func TestAnotherTaskAfterAProgram(t *testing.T) {
	for _, name := range dumps.Kernels {
		t.Run(name, func(t *testing.T) {
			k := bootWith(t, name, &kprobelab.Options{Budget: 400_000_000})
			require.Equal(t, ended{0, "started\n", ""}, k.shell("sleep 1000 > /dev/null 2>&1 & echo started"))
			list, err := k.Tasks()
			require.NoError(t, err)
			last := list[len(list)-1] // the program that the shell has left
			require.False(t, last.Kernel)
			require.NoError(t, k.As(strconv.Itoa(last.PID)))
			pid, err := k.SystemCall("getpid")
			require.NoError(t, err)
			require.EqualValues(t, last.PID, pid)
			require.Equal(t, ended{0, "one\n", "two\n"}, k.shell("echo one; echo two >&2"))
			require.NoError(t, k.As("kthreadd"))
			v, err := k.Call("int_sqrt", 81)
			require.NoError(t, err)
			require.EqualValues(t, 9, v)
		})
	}
}

func TestTasksThatCannotBeCalled(t *testing.T) {
	k := boot(t, "6.1.smp2")
	for name, why := range map[string]string{
		"4711": "there is no task 4711", "nobody": `there is no task of the name "nobody"`, "0": "there is no task 0", "-1": "there is no task -1",
	} {
		err := k.As(name)
		require.ErrorIs(t, err, booted.ErrTask)
		require.ErrorContains(t, err, why)
		require.False(t, strings.Contains(err.Error(), "\n"))
	}
	require.Equal(t, ended{0, "", ""}, k.shell("sleep 1000 > /dev/null 2>&1 & sleep 1000 > /dev/null 2>&1 & sleep 0.1"))
	list, err := k.Tasks()
	require.NoError(t, err)
	err = k.As(list[len(list)-1].Comm)
	require.ErrorIs(t, err, booted.ErrTask)
	require.ErrorContains(t, err, "2 tasks have the name")

	l, err := kprobelab.Open("", nil)
	require.NoError(t, err)
	defer l.Close()
	_, err = l.Booted()
	require.ErrorIs(t, err, booted.ErrNotBooted)
}

// TestTheTaskOfACallEnds: a call in which its task ends never returns, so the run ends there, not
// at its budget.
func TestTheTaskOfACallEnds(t *testing.T) {
	each(t, func(t *testing.T, k *kernel) {
		require.NoError(t, k.As("kswapd0"))
		before := k.Machine.Instructions()
		_, err := k.Call("do_exit", 0)
		require.ErrorIs(t, err, machine.ErrTaskExited)
		require.Less(t, k.Machine.Instructions()-before, uint64(1_000_000))
		_, err = k.Call("int_sqrt", 81)
		require.ErrorIs(t, err, machine.ErrLost)
		k.restore()
		v, err := k.Call("int_sqrt", 81)
		require.NoError(t, err)
		require.EqualValues(t, 9, v)
		require.Equal(t, ended{0, "on\n", ""}, k.shell("(exit 3); echo on"), "tasks of programs end without")
	})
}
