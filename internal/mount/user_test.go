//go:build linux

package mount

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// nobody is the number of an ordinary user and its group.
const nobody = 65534

// asNobody runs tests of this binary as an ordinary user, in a folder of its own.
func asNobody(t *testing.T, env []string, args ...string) (string, error) {
	t.Helper()
	return asNobodyWith(t, nil, env, args...)
}

// asNobodyWith is asNobody with open files, from number 3 on.
func asNobodyWith(t *testing.T, files []*os.File, env []string, args ...string) (string, error) {
	t.Helper()
	dir, err := os.MkdirTemp("", "nobody")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	// Other users may not read the folder in which go test has built it.
	binary := filepath.Join(dir, "mount.test")
	copyFile(t, os.Args[0], binary)
	tmp := filepath.Join(dir, "tmp")
	require.NoError(t, os.Mkdir(tmp, 0o700))
	require.NoError(t, os.Chown(tmp, nobody, nobody))
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Dir, cmd.ExtraFiles = tmp, files
	cmd.Env = append(append(os.Environ(), "TMPDIR="+tmp, "HOME="+tmp), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	require.NoError(t, err)
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(out, in)
	require.NoError(t, err)
	require.NoError(t, out.Close())
}

// userTests are the tests of this package that mount.
const userTests = "^(TestFilesAsShellsUseThem|TestRefusalsKeepTheirErrno|TestInstances|TestGuestSeesWhatIsDone|" +
	"TestReaderThatWaitsCanBeKilled|TestUnmountWhileBusy|TestStress)$"

// An ordinary user mounts by fusermount3, and all goes as for root.
func TestOrdinaryUserMounts(t *testing.T) {
	switch {
	case !root():
		t.Skip("not root: every test here is an ordinary user's already")
	case testing.Short():
		t.Skip("runs the other tests once more")
	}
	bin, err := fusermount()
	if err != nil {
		t.Skip("fusermount3 is not there (package fuse3)")
	}
	if i, err := os.Stat(bin); err != nil || i.Mode()&os.ModeSetuid == 0 {
		t.Skipf("%s is not setuid", bin)
	}
	if i, err := os.Stat("/dev/fuse"); err != nil || i.Mode().Perm()&0o006 != 0o006 {
		t.Skip("/dev/fuse is not there, or not for all to open")
	}
	out, err := asNobody(t, nil, "-test.v", "-test.run", userTests)
	require.NoError(t, err, out)
	require.NotContains(t, out, "--- SKIP", out)
	require.Equal(t, strings.Count(userTests, "|")+1, strings.Count(out, "--- PASS"), out)
}

// Without fusermount3 an ordinary user gets an error that says so, and nothing is tried.
func TestOrdinaryUserIsToldWhatIsMissing(t *testing.T) {
	if dir := os.Getenv("KPROBELAB_TEST_MOUNT"); dir != "" {
		_, err := New(dir, newFakeTree(), nil)
		fmt.Println("said:", err)
		return
	}
	args := []string{"-test.run", "^TestOrdinaryUserIsToldWhatIsMissing$"}
	env := []string{"PATH=/nowhere"}
	var out string
	var err error
	if root() {
		out, err = asNobody(t, append(env, "KPROBELAB_TEST_MOUNT=."), args...)
	} else {
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Env = append(append(os.Environ(), env...), "KPROBELAB_TEST_MOUNT="+t.TempDir())
		var b []byte
		b, err = cmd.CombinedOutput()
		out = string(b)
	}
	require.NoError(t, err, out)
	require.Contains(t, out, "said: cannot mount: as an ordinary user that needs fusermount3, which is not there; install the package fuse3, or mount as root")
}

// A mount of root is there for all users, and each file only for those whom its
// mode lets in, as on tracefs.
func TestOtherUsersAreRefused(t *testing.T) {
	if dir := os.Getenv("KPROBELAB_TEST_OTHERS"); dir != "" {
		at := func(name string) string { return filepath.Join(dir, name) }
		b, err := os.ReadFile(at("hello"))
		require.NoError(t, err)
		require.Equal(t, "hello\n", string(b))
		for name, try := range map[string]func() error{
			"read":     func() error { _, err := os.ReadFile(at("secret")); return err },
			"write":    func() error { return os.WriteFile(at("sink"), []byte("x"), 0) },
			"append":   func() error { _, err := os.OpenFile(at("sink"), os.O_APPEND|os.O_WRONLY, 0); return err },
			"both":     func() error { _, err := os.OpenFile(at("secret"), os.O_RDWR, 0); return err },
			"truncate": func() error { return os.Truncate(at("sink"), 0) },
			"mkdir":    func() error { return os.Mkdir(at("instances/mine"), 0o755) },
			"rmdir":    func() error { return os.Remove(at("instances/roots")) },
			"link":     func() error { return os.Symlink("hello", at("link")) },
			"create":   func() error { return os.WriteFile(at("made"), nil, 0o666) },
			"rename":   func() error { return os.Rename(at("hello"), at("renamed")) },
			"fifo":     func() error { return syscall.Mkfifo(at("fifo"), 0o666) },
			"unlink":   func() error { return syscall.Unlink(at("hello")) },
		} {
			require.ErrorIs(t, try(), syscall.EACCES, name)
		}
		// Whatever way leads there, the files are the same.
		for _, way := range strings.Split(os.Getenv("KPROBELAB_TEST_WAYS"), ":") {
			_, err := os.ReadFile(filepath.Join(way, "secret"))
			require.ErrorIs(t, err, syscall.EACCES, way)
			require.ErrorIs(t, os.WriteFile(filepath.Join(way, "sink"), []byte("x"), 0), syscall.EACCES, way)
		}
		require.Error(t, syscall.Setxattr(at("secret"), "user.x", []byte("y"), 0))
		require.Error(t, os.Link(at("hello"), at("hardlink"))) // EPERM where the host protects links
		require.Error(t, syscall.Setxattr(at("sink"), "system.posix_acl_access", []byte{2, 0, 0, 0}, 0))
		// What may be read may be mapped at most to be read.
		hello, err := os.Open(at("hello"))
		require.NoError(t, err)
		_, err = syscall.Mmap(int(hello.Fd()), 0, 4096, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		require.Error(t, err)
		require.NoError(t, hello.Close())
		require.ErrorIs(t, os.Chmod(at("secret"), 0o666), syscall.EPERM)
		require.ErrorIs(t, os.Chown(at("secret"), nobody, nobody), syscall.EPERM)
		require.ErrorIs(t, os.Chtimes(at("secret"), time.Now(), time.Now().Add(-time.Hour)), syscall.EPERM)
		return
	}
	dir := reachable(t)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "instances/roots"), 0o755))
	ways := fmt.Sprintf("%s:/proc/self/cwd/%s", dir, strings.Repeat("../", 20)+dir)
	if bind, err := bound(t, dir); err == nil {
		ways += ":" + bind
	}
	out, err := asNobody(t, []string{"KPROBELAB_TEST_OTHERS=" + dir, "KPROBELAB_TEST_WAYS=" + ways}, "-test.v", "-test.run", "^TestOtherUsersAreRefused$")
	require.NoError(t, err, out)
	require.Contains(t, out, "--- PASS", out)
	b, err := os.ReadFile(filepath.Join(dir, "secret"))
	require.NoError(t, err)
	require.Equal(t, "secret\n", string(b))
}

// reachable mounts the fake files of root's in a folder that every user may enter.
func reachable(t *testing.T) string {
	t.Helper()
	if !root() {
		t.Skip("not root: no other user can reach the mount")
	}
	dir, err := os.MkdirTemp("", "reachable")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	require.NoError(t, os.Chmod(dir, 0o755))
	m, err := New(dir, newFakeTree(), nil)
	if errors.Is(err, ErrNoFUSE) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Unmount()) })
	return dir
}

// bound is the folder at a second place.
func bound(t *testing.T, dir string) (string, error) {
	to, err := os.MkdirTemp("", "bound")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(to)) })
	require.NoError(t, os.Chmod(to, 0o755))
	if err := syscall.Mount(dir, to, "", syscall.MS_BIND, ""); err != nil {
		return "", err
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(to, syscall.MNT_DETACH)) })
	return to, nil
}
