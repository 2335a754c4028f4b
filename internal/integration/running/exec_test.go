package running

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/errno"
	"kprobelab/internal/integration/dumps"
	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/kprobes"
	"kprobelab/machine"
	"kprobelab/x86"
)

// each runs a test on every kernel that there is a dump of.
func each(t *testing.T, test func(t *testing.T, k *kernel)) {
	eachBut(t, func(testing.TB, string) {}, test)
}

// eachBut is each with a rule that skips some kernels: dumps.One for a test that takes long.
func eachBut(t *testing.T, skip func(tb testing.TB, name string), test func(t *testing.T, k *kernel)) {
	for _, name := range dumps.Running {
		t.Run(name, func(t *testing.T) {
			dumps.Twin(t, name)
			skip(t, name)
			test(t, boot(t, name))
		})
	}
}

func TestProgramsRunAndEnd(t *testing.T) {
	each(t, func(t *testing.T, k *kernel) {
		for _, c := range []struct {
			name, line string
			want       ended
		}{
			{"output and exit code", "echo hello; exit 3", ended{3, "hello\n", ""}},
			{"standard error apart", "echo one; echo two >&2", ended{0, "one\n", "two\n"}},
			{"a pipe", "echo a b c | wc -w", ended{0, "3\n", ""}},
			{"a signal", "kill -9 $$", ended{137, "", ""}},
			{"a file", "echo x > /tmp/f; cat /tmp/f; rm /tmp/f; cat /tmp/f 2>/dev/null", ended{1, "x\n", ""}},
			{"many processes", "for i in 1 2 3 4 5; do (echo $i) & done; wait; echo end", ended{0, "1\n2\n3\n4\n5\nend\n", ""}},
			{"loopback", "ping -c 1 -q 127.0.0.1 | grep -c '1 packets received'", ended{0, "1\n", ""}},
			{"what sleeps wakes", "sleep 0.3; echo awake", ended{0, "awake\n", ""}},
		} {
			t.Run(c.name, func(t *testing.T) {
				k.restore()
				got := k.shell(c.line)
				if c.name == "many processes" { // in any order, on two processors
					require.Len(t, strings.Fields(got.out), 6)
					got.out = c.want.out
				}
				require.Equal(t, c.want, got)
			})
		}
	})
}

func TestAProgramThatIsNotThere(t *testing.T) {
	each(t, func(t *testing.T, k *kernel) {
		_, err := k.Exec(&booted.Program{Args: []string{"/no/such"}})
		require.ErrorIs(t, err, errno.ENOENT)
		require.Equal(t, ended{0, "still here\n", ""}, k.shell("echo still here"))
	})
}

func TestARestoredKernelRepeatsToTheByte(t *testing.T) {
	each(t, func(t *testing.T, k *kernel) {
		const line = "ls -l /proc/self; date; cat /proc/uptime; echo $$"
		run := func() (ended, memory, uint64) {
			k.restore()
			from := k.Machine.Instructions()
			e := k.shell(line)
			return e, k.written(), k.Machine.Instructions() - from
		}
		first, mem, n := run()
		require.Zero(t, first.code)
		for range 2 {
			e, m, i := run()
			require.Equal(t, first, e)
			require.Equal(t, n, i, "instructions")
			require.Equal(t, len(mem), len(m), "pages")
			for a, b := range mem {
				require.Equal(t, b, m[a], a)
			}
		}
	})
}

func TestSystemCalls(t *testing.T) {
	const read, open, getpid, fork, wait4, getppid, nanosleep = 0, 2, 39, 57, 61, 110, 35
	each(t, func(t *testing.T, k *kernel) {
		call := func(nr uint64, args ...uint64) int64 {
			v, err := k.Machine.SystemCall(nr, args...)
			require.NoError(t, err)
			return v
		}
		require.EqualValues(t, 1, call(getpid))
		require.EqualValues(t, 0, call(getppid))
		require.EqualValues(t, -38, call(100_000), "ENOSYS")
		require.EqualValues(t, -14, call(open, 0, 0), "EFAULT")
		child := call(fork)
		require.Positive(t, child)
		require.EqualValues(t, child, call(wait4, 1<<64-1, 0, 0, 0), "the child has ended")
		require.EqualValues(t, -10, call(wait4, 1<<64-1, 0, 0, 0), "ECHILD")

		at, err := k.Machine.AllocUser(16)
		require.NoError(t, err)
		require.NoError(t, k.Machine.WriteMem(at, append([]byte{0, 0, 0, 0, 0, 0, 0, 0}, 0x80, 0x96, 0x98, 0, 0, 0, 0, 0))) // 10 ms
		from := k.Machine.Now()
		require.Zero(t, call(nanosleep, uint64(at), 0))
		require.GreaterOrEqual(t, k.Machine.Now()-from, uint64(10_000_000))

		// The call that the dump stopped in goes on as if nothing had been.
		require.Equal(t, ended{0, "on\n", ""}, k.shell("echo on"))
	})
}

// TestProgramDoesWhatItDoesUnderQEMU: 174 different system calls have the same results and output
// as under QEMU from the same boot (internal/integration/booted).
func TestProgramDoesWhatItDoesUnderQEMU(t *testing.T) {
	want, err := os.ReadFile("../../../testdata/calls.txt")
	require.NoError(t, err)
	each(t, func(t *testing.T, k *kernel) {
		var both bytes.Buffer
		code, err := k.Exec(&booted.Program{Args: []string{"/bin/calls"}, Stdin: []byte("not read"), Stdout: &both, Stderr: &both})
		require.NoError(t, err)
		require.Equal(t, 7, code)
		require.Equal(t, string(want), both.String())
	})
}

func TestALostMachineSaysSo(t *testing.T) {
	k := boot(t, "6.1")
	m, err := kprobelab.Open(runs.File(t, "6.1"), &kprobelab.Options{Budget: 20_000_000})
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	const pause = 34
	_, err = m.Machine.SystemCall(pause)
	require.ErrorIs(t, err, machine.ErrBudget)
	_, err = m.Call("get_random_u32")
	require.ErrorIs(t, err, machine.ErrLost)
	require.Equal(t, ended{0, "other\n", ""}, k.shell("echo other"), "another machine on the dump")
}

// TestTasksAreTheGuests: a task's kretprobe instances follow it over switches, and
// are given back when it ends.
func TestTasksAreTheGuests(t *testing.T) {
	each(t, func(t *testing.T, k *kernel) {
		entries, returns := map[int]int{}, map[int]int{}
		p := &kprobes.Kretprobe{
			KP: kprobes.Kprobe{SymbolName: "do_wait"}, MaxActive: 8,
			EntryHandler: func(*kprobes.Instance, *x86.PtRegs) int { entries[k.Machine.Task()]++; return 0 },
			Handler:      func(*kprobes.Instance, *x86.PtRegs) int { returns[k.Machine.Task()]++; return 0 },
		}
		require.NoError(t, k.Kprobes.RegisterKretprobe(p))
		dead := &kprobes.Kretprobe{KP: kprobes.Kprobe{SymbolName: "do_exit"}, MaxActive: 40}
		err := k.Kprobes.RegisterKretprobe(dead)
		require.True(t, err == nil || errors.Is(err, errno.EINVAL), "%v", err)
		for range 2 {
			require.Equal(t, ended{0, "", ""}, k.shell("for i in 1 2 3 4; do sleep 0.0$i & done; wait"))
		}
		require.NotEmpty(t, entries)
		require.Equal(t, entries, returns)
		require.Zero(t, p.Nmissed)
		require.Zero(t, dead.Nmissed, "instances of ended tasks are free again")
	})
}
