package mount

import (
	"context"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/tracing"
)

func tree(t *testing.T) *MemTree {
	t.Helper()
	m := NewMemTree()
	require.NoError(t, m.Fix("dev"))
	require.NoError(t, m.Null("dev/null"))
	require.NoError(t, m.Fix("tmp"))
	return m
}

// write writes as one process that opens the file.
func write(m *MemTree, name string, flag int, at int64, text string) error {
	h, err := m.OpenFile(name, flag)
	if err != nil {
		return err
	}
	_, err = h.WriteAt([]byte(text), at)
	return err
}

func read(t *testing.T, m *MemTree, name string) string {
	t.Helper()
	b, err := fs.ReadFile(m, name)
	require.NoError(t, err)
	return string(b)
}

func TestIsAFileSystem(t *testing.T) {
	m := tree(t)
	require.NoError(t, m.Mkdir("tmp/d"))
	require.NoError(t, m.Create("tmp/d/f", 0o640))
	require.NoError(t, write(m, "tmp/d/f", os.O_WRONLY, 0, "text"))
	require.NoError(t, fstest.TestFS(m, "dev/null", "tmp/d/f"))
	i, err := m.Stat("tmp/d/f")
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o640), i.Mode())
	require.Equal(t, int64(4), i.Size())
}

func TestFilesKeepWhatIsWritten(t *testing.T) {
	m := tree(t)
	require.NoError(t, m.Create("tmp/f", 0o600))
	require.NoError(t, write(m, "tmp/f", os.O_WRONLY, 3, "abc"))
	require.Equal(t, "\x00\x00\x00abc", read(t, m, "tmp/f"))
	require.NoError(t, write(m, "tmp/f", os.O_WRONLY|os.O_APPEND, 0, "d"))
	require.Equal(t, "\x00\x00\x00abcd", read(t, m, "tmp/f"))
	require.NoError(t, write(m, "tmp/f", os.O_WRONLY|os.O_TRUNC, 0, "new"))
	require.Equal(t, "new", read(t, m, "tmp/f"))
	require.NoError(t, m.Truncate("tmp/f", 1))
	require.NoError(t, m.Truncate("tmp/f", 2))
	require.Equal(t, "n\x00", read(t, m, "tmp/f"))
	require.NoError(t, m.Create("tmp/f", 0o600), "there already")
	require.Equal(t, "n\x00", read(t, m, "tmp/f"))
	require.ErrorIs(t, m.Truncate("tmp/f", -1), errno.EINVAL)

	require.NoError(t, write(m, "dev/null", os.O_WRONLY|os.O_TRUNC, 0, "gone"))
	require.NoError(t, m.Truncate("dev/null", 100))
	require.Empty(t, read(t, m, "dev/null"))
}

func TestWhatIsOpenOutlivesItsName(t *testing.T) {
	m := tree(t)
	require.NoError(t, m.Create("tmp/f", 0o600))
	h, err := m.OpenFile("tmp/f", os.O_RDWR)
	require.NoError(t, err)
	_, err = h.WriteAt([]byte("kept"), 0)
	require.NoError(t, err)
	require.NoError(t, m.Unlink("tmp/f"))
	_, err = m.Stat("tmp/f")
	require.ErrorIs(t, err, fs.ErrNotExist)
	var b [8]byte
	n, err := h.ReadAt(context.Background(), b[:], 1)
	require.NoError(t, err)
	require.Equal(t, "ept", string(b[:n]))
	i, err := h.(*memHandle).Stat()
	require.NoError(t, err)
	require.Equal(t, int64(4), i.Size())
	require.Zero(t, m.bytes)
	_, err = h.WriteAt(make([]byte, bounded.MountBytes), 1)
	require.ErrorIs(t, err, errno.ENOSPC)
}

func TestRefusals(t *testing.T) {
	m := tree(t)
	require.NoError(t, m.Mkdir("tmp/d"))
	require.NoError(t, m.Symlink("to", "tmp/d/link"))
	target, err := m.Readlink("tmp/d/link")
	require.NoError(t, err)
	require.Equal(t, "to", target)
	_, err = m.Readlink("dev/null")
	require.ErrorIs(t, err, errno.EINVAL)
	_, err = m.Readlink("tmp/none")
	require.ErrorIs(t, err, errno.ENOENT)
	_, err = m.OpenFile("tmp", os.O_RDONLY)
	require.ErrorIs(t, err, errno.EISDIR)
	_, err = m.ReadDir("dev/null")
	require.ErrorIs(t, err, errno.ENOTDIR)
	for _, c := range []struct {
		err  error
		want errno.Errno
	}{
		{m.Mkdir("tmp/d"), errno.EEXIST},
		{m.Symlink("x", "tmp/d"), errno.EEXIST},
		{m.Mkdir("none/d"), errno.ENOENT},
		{m.Create("dev/null/f", 0o600), errno.ENOTDIR},
		{m.Rmdir("tmp/d"), errno.ENOTEMPTY},
		{m.Rmdir("tmp/d/link"), errno.ENOTDIR},
		{m.Unlink("tmp/d"), errno.EISDIR},
		{m.Unlink("tmp/none"), errno.ENOENT},
		{m.Unlink("dev/null"), errno.EBUSY},
		{m.Rmdir("tmp/none"), errno.ENOENT},
		{m.Unlink("tmp/d/link"), 0},
		{m.Rmdir("tmp/d"), 0},
		{m.Rmdir("tmp"), errno.EBUSY},
		{m.Truncate("tmp/none", 1), errno.ENOENT},
	} {
		require.Equal(t, c.want, errno.Of(c.err), "%v", c.err)
	}
}

func TestFull(t *testing.T) {
	m := tree(t)
	require.NoError(t, m.Create("tmp/f", 0o600))
	require.NoError(t, m.Truncate("tmp/f", bounded.MountBytes))
	require.NoError(t, m.Create("tmp/g", 0o600))
	require.ErrorIs(t, write(m, "tmp/g", os.O_WRONLY, 0, "x"), errno.ENOSPC)
	require.NoError(t, m.Unlink("tmp/f"))
	require.NoError(t, write(m, "tmp/g", os.O_WRONLY, 0, "x"))
	var err error
	for i := 0; err == nil && i <= bounded.MountEntries; i++ {
		err = m.Mkdir("tmp/" + strings.Repeat("x", i+1))
	}
	require.ErrorIs(t, err, errno.ENOSPC)
}

// Grafted onto another tree, everything below the place is the store's, and
// nothing can be made elsewhere.
func TestGrafted(t *testing.T) {
	m, other := tree(t), NewMemTree()
	require.NoError(t, other.Fix("k"))
	require.NoError(t, other.Mkdir("d"))
	g := Graft(readOnly{other}, "k/root", m)
	names := func(dir string) (list []string) {
		entries, err := g.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			list = append(list, e.Name())
		}
		return list
	}
	require.Equal(t, []string{"root"}, names("k"))
	require.Equal(t, []string{"dev", "tmp"}, names("k/root"))
	maker, dirs := g.(Maker), g.(Directories)
	require.NoError(t, dirs.Mkdir("k/root/tmp/d"))
	require.NoError(t, maker.Create("k/root/tmp/d/f", 0o600))
	require.NoError(t, maker.Symlink("f", "k/root/tmp/d/l"))
	target, err := maker.Readlink("k/root/tmp/d/l")
	require.NoError(t, err)
	require.Equal(t, "f", target)
	require.NoError(t, maker.Truncate("k/root/tmp/d/f", 3))
	b, err := fs.ReadFile(g, "k/root/tmp/d/f")
	require.NoError(t, err)
	require.Len(t, b, 3)
	require.NoError(t, maker.Unlink("k/root/tmp/d/l"))
	require.NoError(t, maker.Unlink("k/root/tmp/d/f"))
	require.NoError(t, dirs.Rmdir("k/root/tmp/d"))
	require.Empty(t, names("k/root/tmp"))
	for _, err := range []error{
		maker.Create("d/f", 0o600), maker.Symlink("x", "d/l"), maker.Unlink("d"), maker.Truncate("d", 0), dirs.Mkdir("d/e"), dirs.Rmdir("d"),
		maker.Create("k/rootx", 0o600),
	} {
		require.ErrorIs(t, err, fs.ErrPermission)
	}
	_, err = g.OpenFile("k/root/dev/null", os.O_RDWR)
	require.NoError(t, err)
	i, err := g.Stat("k/root")
	require.NoError(t, err)
	require.True(t, i.IsDir())
}

// readOnly hides the methods of a store that make files.
type readOnly struct{ tracing.Tree }
