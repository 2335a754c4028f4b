//go:build linux

package mount

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// readers are ways to get a file's content that do not use read(2) alone.
var readers = map[string]func(t *testing.T, file string) ([]byte, error){
	"sendfile":             func(t *testing.T, file string) ([]byte, error) { return sendfile(t, file, false) },
	"sendfile after fstat": func(t *testing.T, file string) ([]byte, error) { return sendfile(t, file, true) },
	"splice":               splice,
	"read":                 func(_ *testing.T, file string) ([]byte, error) { return os.ReadFile(file) },
	"read after a seek":    seekAndRead,
}

func open(t *testing.T, file string) int {
	fd, err := unix.Open(file, unix.O_RDONLY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func sendfile(t *testing.T, file string, stat bool) ([]byte, error) {
	in := open(t, file)
	if stat {
		var s unix.Stat_t
		require.NoError(t, unix.Fstat(in, &s))
		require.Zero(t, s.Size)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer out.Close()
	for {
		n, err := unix.Sendfile(int(out.Fd()), in, nil, 1<<20)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return os.ReadFile(out.Name())
		}
	}
}

func splice(t *testing.T, file string) ([]byte, error) {
	in := open(t, file)
	var pipe [2]int
	require.NoError(t, unix.Pipe(pipe[:]))
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	var all bytes.Buffer
	for {
		n, err := unix.Splice(in, nil, pipe[1], nil, 1<<15, 0)
		if err != nil || n == 0 {
			return all.Bytes(), err
		}
		b := make([]byte, n)
		got, err := unix.Read(pipe[0], b)
		require.NoError(t, err)
		all.Write(b[:got])
	}
}

func seekAndRead(t *testing.T, file string) ([]byte, error) {
	in := open(t, file)
	end, err := unix.Seek(in, 0, unix.SEEK_END)
	require.NoError(t, err)
	require.Zero(t, end, "a file that says it has no bytes ends at 0")
	b := make([]byte, 1<<20)
	n := 0
	for {
		k, err := unix.Read(in, b[n:])
		if err != nil || k == 0 {
			return b[:n], err
		}
		n += k
	}
}

// By every way to read a file, a program gets all of its content.
func TestReadersThatDoNotRead(t *testing.T) {
	f := live(t)
	var all strings.Builder
	for _, name := range strings.Fields("vfs_read vfs_write vfs_open snprintf gcd") {
		for i := range 40 {
			all.WriteString("p:" + name + string(rune('a'+i%26)) + string(rune('a'+i/26)) + " " + name + "\n")
		}
	}
	require.NoError(t, f.write("kprobe_events", all.String()))
	m := mountOf(t, f.Tree(), f.Guest())
	for _, name := range []string{"kprobe_events", "trace", "README", "events/enable", "kprobes/list"} {
		want, err := fs.ReadFile(f.Tree(), name)
		require.NoError(t, err)
		for how, read := range readers {
			t.Run(name+" by "+how, func(t *testing.T) {
				got, err := read(t, filepath.Join(m.Dir(), name))
				require.NoError(t, err)
				require.Equal(t, string(want), string(got))
			})
		}
		i, err := os.Stat(filepath.Join(m.Dir(), name))
		require.NoError(t, err)
		require.Zero(t, i.Size())
	}
}

// New content is read, and appended bytes go to the end, whatever size the host has cached.
func TestReadersSeeWhatIsNew(t *testing.T) {
	f := live(t)
	m := mountOf(t, f.Tree(), f.Guest())
	file := filepath.Join(m.Dir(), "kprobe_events")
	for _, line := range []string{"p:k/a vfs_read", "p:k/b vfs_write", "p:k/c vfs_open"} {
		to, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, err)
		_, err = to.WriteString(line + "\n")
		require.NoError(t, err)
		require.NoError(t, to.Close())
		for how, read := range readers {
			got, err := read(t, file)
			require.NoError(t, err, how)
			require.True(t, strings.HasSuffix(string(got), line+"\n"), "%s: %q", how, got)
		}
	}
	require.Equal(t, "p:k/a vfs_read\np:k/b vfs_write\np:k/c vfs_open\n", f.read(t, "kprobe_events"))
}

// A file that waits is not read through the page cache: programs get the error that makes them read
// it.
func TestSpliceOfAFileThatWaits(t *testing.T) {
	f := live(t)
	m := mountOf(t, f.Tree(), f.Guest())
	require.NoError(t, f.write("trace_marker", "hello"))
	for _, how := range []string{"sendfile", "splice"} {
		_, err := readers[how](t, filepath.Join(m.Dir(), "trace_pipe"))
		require.ErrorIs(t, err, unix.EINVAL, how)
	}
	b := make([]byte, 4096)
	n, err := unix.Read(open(t, filepath.Join(m.Dir(), "trace_pipe")), b)
	require.NoError(t, err)
	require.Contains(t, string(b[:n]), "hello")
}
