package running

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/internal/integration/dumps"
	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/internal/integration/dumps/unnoted"
	"kprobelab/kimage/vmcore"
)

// did holds the results of the calls and the program of TestADumpWithoutControlRegisters.
type did struct {
	calls  []int64
	buffer string
	gcd    uint64
	code   int
	output string
	// interrupts is their number, trail their digest.
	interrupts, trail uint64
}

func (k *kernel) does() did {
	var d did
	call := func(name string, args ...any) {
		v, err := k.SystemCall(name, args...)
		require.NoError(k.t, err, name)
		d.calls = append(d.calls, v)
	}
	b := make([]byte, 16)
	call("getpid")
	call("openat", -100, "/etc/hostname", 0)
	call("read", d.calls[1], b)
	call("openat", -100, "/nope", 0)
	call("socket", 1, 1, 0)
	call("mkdir", "/tmp/here", 0o755)
	call("nanosleep", append(make([]byte, 8), 0x80, 0x96, 0x98, 0, 0, 0, 0, 0), 0) // 10 ms
	d.buffer = string(b)
	var err error
	d.gcd, err = k.Call("gcd", 12, 18)
	require.NoError(k.t, err)
	k.restore()
	var out bytes.Buffer
	d.code, err = k.Exec(&booted.Program{Args: []string{"/bin/calls"}, Stdin: []byte("not read"), Stdout: &out, Stderr: &out})
	require.NoError(k.t, err)
	d.output = out.String()
	d.interrupts, d.trail = k.Machine.Interrupts()
	return d
}

// TestADumpWithoutControlRegisters: a kernel whose dump has notes of the general registers alone
// runs as with QEMU's notes, interrupt by interrupt.
func TestADumpWithoutControlRegisters(t *testing.T) {
	for _, name := range dumps.Running {
		t.Run(name, func(t *testing.T) {
			runs.File(t, name)
			want := boot(t, name).does()
			require.Equal(t, 7, want.code)
			require.Equal(t, want, bootFile(t, unnoted.File(t, name), &kprobelab.Options{Optimize: true, Budget: budget}).does())
		})
	}
}

// TestAFilteredDump: a dump that makedumpfile has filtered runs as far as it needs no removed page;
// the error names the page.
func TestAFilteredDump(t *testing.T) {
	program, err := exec.LookPath("makedumpfile")
	if err != nil {
		t.Skip("no makedumpfile on PATH")
	}
	runs.File(t, "6.1")
	file := filepath.Join(t.TempDir(), "filtered")
	text, err := exec.Command(program, "-z", "-d", "31", unnoted.File(t, "6.1"), file).CombinedOutput()
	require.NoError(t, err, string(text))
	k := bootFile(t, file, &kprobelab.Options{Budget: budget})
	v, err := k.Call("gcd", 12, 18)
	require.NoError(t, err)
	require.EqualValues(t, 6, v)
	pid, err := k.SystemCall("getpid")
	require.NoError(t, err)
	require.EqualValues(t, 1, pid)
	fd, err := k.SystemCall("openat", -100, "/etc/hostname", 0)
	require.NoError(t, err)
	require.EqualValues(t, 3, fd)
	k.restore()
	_, err = k.Exec(&booted.Program{Args: []string{"/bin/calls"}})
	var filtered *vmcore.FilteredError
	require.ErrorAs(t, err, &filtered)
	require.NotErrorIs(t, err, booted.ErrNoInit)
	require.ErrorContains(t, err, "was left out of the dump")
	require.ErrorContains(t, err, "makedumpfile -c -d 1")
}
