//go:build linux

package mount

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Files that root opens and hands to another user: its folder, secret to be read,
// sink to be written.
const (
	givenFolder = 3 + iota
	givenSecret
	givenSink
)

// TestOtherUsersWithFilesOfRoots: a file that root has opened and passed on can be used in the way
// it was opened, as any file; it opens no other, and not itself anew. Writes of odd sizes at odd
// places through it, and waiting on it, have no bad effect.
func TestOtherUsersWithFilesOfRoots(t *testing.T) {
	if dir := os.Getenv("KPROBELAB_TEST_GIVEN"); dir != "" {
		useGiven(t, dir, os.Getenv("KPROBELAB_TEST_PARENT"))
		return
	}
	dir := reachable(t)
	folder, err := os.Open(dir)
	require.NoError(t, err)
	secret, err := os.Open(filepath.Join(dir, "secret"))
	require.NoError(t, err)
	sink, err := os.OpenFile(filepath.Join(dir, "sink"), os.O_WRONLY, 0)
	require.NoError(t, err)
	files := []*os.File{folder, secret, sink}
	out, err := asNobodyWith(t, files, []string{"KPROBELAB_TEST_GIVEN=" + dir, fmt.Sprintf("KPROBELAB_TEST_PARENT=%d", os.Getpid())},
		"-test.v", "-test.run", "^TestOtherUsersWithFilesOfRoots$")
	for _, f := range files {
		_ = f.Close()
	}
	require.NoError(t, err, out)
	require.Contains(t, out, "--- PASS", out)
	b, err := os.ReadFile(filepath.Join(dir, "secret"))
	require.NoError(t, err)
	require.Equal(t, "secret\n", string(b))
}

func useGiven(t *testing.T, dir, parent string) {
	b := make([]byte, 64)
	n, err := unix.Pread(givenSecret, b, 0)
	require.NoError(t, err)
	require.Equal(t, "secret\n", string(b[:n]))

	// It is no way to another file, nor to more rights on its own.
	for name, flag := range map[string]int{"secret": unix.O_RDONLY, "./secret": unix.O_RDWR, "sink": unix.O_WRONLY, "instances/../secret": unix.O_RDONLY, "hello": unix.O_RDWR} {
		_, err := unix.Openat(givenFolder, name, flag, 0)
		require.ErrorIs(t, err, unix.EACCES, name)
	}
	for _, name := range []string{
		fmt.Sprintf("/proc/self/fd/%d", givenSecret), fmt.Sprintf("/proc/self/fd/%d/secret", givenFolder),
		"/proc/self/root" + dir + "/secret", "/proc/self/cwd/../../.." + dir + "/secret", fmt.Sprintf("/proc/%d/root%s/secret", os.Getpid(), dir),
		fmt.Sprintf("/proc/%s/root%s/secret", parent, dir), fmt.Sprintf("/proc/%s/cwd", parent), fmt.Sprintf("/proc/%s/fd/%d", parent, givenSecret),
	} {
		_, err := os.ReadFile(name)
		require.Error(t, err, name)
	}
	_, err = os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", givenSink), os.O_WRONLY, 0)
	require.ErrorIs(t, err, unix.EACCES)
	_, err = unix.Write(givenSecret, []byte("x"))
	require.ErrorIs(t, err, unix.EBADF)
	_, err = unix.Read(givenSink, b)
	require.ErrorIs(t, err, unix.EBADF)
	require.Error(t, unix.Ftruncate(givenSecret, 0))
	for name, try := range map[string]func() error{
		"chmod":    func() error { return unix.Fchmod(givenSecret, 0o666) },
		"chown":    func() error { return unix.Fchown(givenSecret, nobody, nobody) },
		"xattr":    func() error { return unix.Fsetxattr(givenSecret, "user.x", []byte("y"), 0) },
		"trusted":  func() error { return unix.Fsetxattr(givenSecret, "trusted.x", []byte("y"), 0) },
		"caps":     func() error { return unix.Fsetxattr(givenSink, "security.capability", make([]byte, 20), 0) },
		"link":     func() error { return unix.Linkat(givenSecret, "", givenFolder, "l", unix.AT_EMPTY_PATH) },
		"rename":   func() error { return unix.Renameat(givenFolder, "secret", givenFolder, "hello") },
		"exchange": func() error { return unix.Renameat2(givenFolder, "secret", givenFolder, "hello", unix.RENAME_EXCHANGE) },
		"away":     func() error { return unix.Renameat(givenFolder, "secret", unix.AT_FDCWD, "mine") },
		"unlink":   func() error { return unix.Unlinkat(givenFolder, "secret", 0) },
		"mkdir":    func() error { return unix.Mkdirat(givenFolder, "instances/x", 0o777) },
		"mount":    func() error { return unix.Mount("none", dir, "tmpfs", 0, "") },
		"unmount":  func() error { return unix.Unmount(dir, unix.MNT_DETACH) },
	} {
		require.Error(t, try(), name)
	}

	// Who waits on it is answered: there is something to read, or not.
	for _, fd := range []int{givenFolder, givenSecret, givenSink} {
		_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLOUT | unix.POLLPRI}}, 0)
		require.NoError(t, err)
		var set unix.FdSet
		set.Set(fd)
		_, err = unix.Select(fd+1, &set, nil, nil, &unix.Timeval{})
		require.NoError(t, err)
	}

	for _, size := range []int{0, 1, 4095, 4096, 4097, 1 << 17, 1<<17 + 1, 1 << 24} {
		for _, at := range []int64{0, 1, 4096, 1<<31 - 1, 1 << 40, 1<<63 - 1} {
			_, _ = unix.Pwrite(givenSink, make([]byte, size), at)
		}
	}
	_, err = unix.Pwrite(givenSink, []byte("x"), -1)
	require.ErrorIs(t, err, unix.EINVAL)
	_, _ = unix.Writev(givenSink, [][]byte{{}, make([]byte, 5000), {}, []byte("x")})
	_, err = os.ReadFile(filepath.Join(dir, "hello")) // it goes on
	require.NoError(t, err)
}
