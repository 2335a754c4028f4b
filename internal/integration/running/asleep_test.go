package running

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/kprobes"
	"kprobelab/machine"
)

// asleep is the error of a run that sleeps.
func asleep(t *testing.T, err error) *booted.AsleepError {
	require.ErrorIs(t, err, booted.ErrAsleep)
	require.NotContains(t, err.Error(), "\n")
	var e *booted.AsleepError
	require.True(t, errors.As(err, &e))
	return e
}

func TestWhatSleepsForEver(t *testing.T) {
	each(t, func(t *testing.T, k *kernel) {
		pipe := func() uint64 {
			ends := make([]byte, 8)
			v, err := k.SystemCall("pipe2", ends, 0)
			require.NoError(t, err)
			require.Zero(t, v)
			return uint64(ends[0])
		}
		_, err := k.SystemCall("read", pipe(), make([]byte, 4), 4)
		e := asleep(t, err)
		require.NoError(t, e.Err)
		require.Len(t, e.Sleepers, 1)
		assert.Regexp(t, `^pid 1 \(init\) sleeps for ever in (anon_)?pipe_read\+0x[0-9a-f]+, called from (new_sync_read, )?vfs_read, ksys_read$`, err.Error())
		_, err = k.SystemCall("getpid")
		require.ErrorIs(t, err, machine.ErrLost)

		// A return probe has its trampoline on the stack.
		k.restore()
		p := &kprobes.Kretprobe{KP: kprobes.Kprobe{SymbolName: "vfs_read"}}
		require.NoError(t, k.Kprobes.RegisterKretprobe(p))
		_, again := k.SystemCall("read", pipe(), make([]byte, 4), 4)
		require.Equal(t, e.Error(), asleep(t, again).Error())

		// A program, and its children, of which the shell waits for one.
		k.restore()
		err = k.shellLine("mkfifo /tmp/x; cat /tmp/x")()
		e = asleep(t, err)
		require.NoError(t, e.Err)
		assert.Regexp(t, `pid \d+ \((cat|busybox)\) sleeps for ever in wait_for_partner\+0x[0-9a-f]+, called from fifo_open, `, err.Error())
		require.Len(t, e.Sleepers, 1)
	})
}

// TestWhatSleepsForATime: a timer of the task's own wakes it, however late that is.
func TestWhatSleepsForATime(t *testing.T) {
	if testing.Short() {
		t.Skip("minutes of virtual time; run without -short")
	}
	k := boot(t, "6.1")
	require.Equal(t, ended{0, "slept\n", ""}, k.shell("sleep 400; echo slept"))
	k.restore()
	fd, err := k.SystemCall("timerfd_create", 1, 0) // CLOCK_MONOTONIC
	require.NoError(t, err)
	once := make([]byte, 32) // interval, then when
	binary.LittleEndian.PutUint64(once[16:], 400)
	v, err := k.SystemCall("timerfd_settime", fd, 0, once, 0)
	require.NoError(t, err)
	require.Zero(t, v)
	v, err = k.SystemCall("read", fd, make([]byte, 8), 8)
	require.NoError(t, err)
	require.EqualValues(t, 8, v)
}

func TestSleepUntilTheBudgetEnds(t *testing.T) {
	k := bootWith(t, "6.1", &kprobelab.Options{Budget: 20_000_000})
	_, err := k.Call("msleep", 1<<30)
	e := asleep(t, err)
	require.ErrorIs(t, err, machine.ErrBudget)
	require.Len(t, e.Sleepers, 1)
	require.Contains(t, err.Error(), "; pid 1 (init) sleeps in schedule_timeout+0x")
}
