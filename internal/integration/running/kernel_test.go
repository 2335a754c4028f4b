package running

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/booted"
	"kprobelab/internal/integration/dumps/runs"
	"kprobelab/machine"
	"kprobelab/x86"
)

// kernel is a booted kernel, and the state to which it goes back.
type kernel struct {
	*kprobelab.Lab
	*booted.Kernel
	t     testing.TB
	clean *machine.Snapshot
	// frames are the words that trampolines have pushed registers to, in the direct map.
	frames map[x86.Addr]bool
}

// budget is enough for a second of a kernel that has nothing to do but wait.
const budget = 2_000_000_000

// boot opens the dump of a kernel. The test is skipped if there is none.
func boot(t testing.TB, name string) *kernel {
	return bootWith(t, name, &kprobelab.Options{Optimize: true, Budget: budget})
}

func bootWith(t testing.TB, name string, o *kprobelab.Options) *kernel {
	return bootFile(t, runs.File(t, name), o)
}

func bootFile(t testing.TB, file string, o *kprobelab.Options) *kernel {
	l, err := kprobelab.Open(file, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	b, err := l.Booted()
	require.NoError(t, err)
	k := &kernel{Lab: l, Kernel: b, t: t}
	k.clean, err = l.Machine.Snapshot()
	require.NoError(t, err)
	return k
}

// restore goes back to the dump.
func (k *kernel) restore() { require.NoError(k.t, k.Machine.Restore(k.clean)) }

// ended is the exit code and the output of a program.
type ended struct {
	code        int
	out, errors string
}

// program runs a program.
func (k *kernel) program(args ...string) ended { return k.fed(nil, args...) }

// fed runs a program with something to read.
func (k *kernel) fed(input []byte, args ...string) ended {
	var out, errors bytes.Buffer
	code, err := k.Exec(&booted.Program{Args: args, Env: []string{"PATH=/bin"}, Stdin: input, Stdout: &out, Stderr: &errors})
	require.NoError(k.t, err, "the kernel's log: %s", k.Machine.Console())
	return ended{code, out.String(), errors.String()}
}

// shell runs a line of shell.
func (k *kernel) shell(line string) ended { return k.program("/bin/busybox", "sh", "-c", line) }

// memory holds the content of pages that were written, by the address of the page.
type memory map[x86.Addr][]byte

// written is the memory that differs from the dump.
func (k *kernel) written() memory {
	m := memory{}
	for _, r := range k.Machine.Dirty(k.clean) {
		for a := r.Start; a < r.End; a += machine.PageSize {
			b := make([]byte, machine.PageSize)
			require.NoError(k.t, k.Machine.ReadMem(a, b))
			m[a] = b
		}
	}
	return m
}

// dumped returns a page's content in the dump.
func (k *kernel) dumped(page x86.Addr) []byte {
	k.restore()
	b := make([]byte, machine.PageSize)
	require.NoError(k.t, k.Machine.ReadMem(page, b))
	return b
}
