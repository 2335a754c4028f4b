//go:build linux

package mount

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/tracing"
)

// mounted mounts a fake tree, or skips the test.
func mounted(t *testing.T, g Guest) (*Mount, *fakeTree) {
	t.Helper()
	tree := newFakeTree()
	return mountOf(t, tree, g), tree
}

// mountOf mounts a tree, until the test ends, or skips the test.
func mountOf(t *testing.T, tree tracing.Tree, g Guest) *Mount {
	t.Helper()
	if err := Supported(); err != nil {
		t.Skipf("no FUSE mounts here: %v", err)
	}
	m, err := New(t.TempDir(), tree, &Options{Guest: g})
	if err != nil {
		// Containers may have the device and yet not the right.
		t.Skipf("no FUSE mounts here: %v", err)
	}
	t.Cleanup(func() { soon(t, "unmount", func() { require.NoError(t, m.Unmount()); m.Wait() }) })
	return m
}

// soon fails the test, instead of hanging, if fn does not return. The limit is far above every
// duration here.
func soon(t *testing.T, what string, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); fn() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Errorf("%s hangs", what)
	}
}

func sh(t *testing.T, m *Mount, script string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	// The shell changes its folder itself: exec.Cmd's Dir is entered between
	// fork and exec, while this process, which serves the folder, stands still.
	cmd := exec.CommandContext(ctx, "sh", "-c", `cd "$0" || exit; `+script, m.Dir())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Where trace-cmd and perf mount the real kernel's files over others, nothing is mounted,
// whether or not the place is there.
func TestRefusesRealPlaces(t *testing.T) {
	for dir, real := range map[string]bool{
		"/sys/kernel/tracing": true, "/sys/kernel/tracing/": true, "/sys/kernel/debug": true, "/sys/kernel/debug/tracing": true,
		"/sys/kernel/../kernel/tracing/x": true, "/tracing": true, "/trace": true,
		"/sys/kernel/tracing2": false, "/tracer": false, "/home/tracing": false,
	} {
		_, err := New(dir, newFakeTree(), nil)
		require.Equal(t, real, errors.Is(err, ErrPlace), "%s: %v", dir, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink("/sys/kernel/debug", link))
	if _, err := os.Stat(link); err == nil {
		_, err = New(link, newFakeTree(), nil)
		require.ErrorIs(t, err, ErrPlace)
	}
}

func TestFilesAsShellsUseThem(t *testing.T) {
	m, tree := mounted(t, nil)
	out, err := sh(t, m, "ls; cat hello; ls -d events/g/e; stat -c '%a %F %s' hello sink events")
	require.NoError(t, err, out)
	require.Equal(t, "busy\nevents\nhello\ninstances\npipe\nrefusing\nsecret\nsink\nhello\nevents/g/e\n"+
		"444 regular file 6\n644 regular empty file 0\n555 directory 0\n",
		strings.Replace(out, "444 regular empty file", "444 regular file", 1))

	out, err = sh(t, m, "echo one > sink; echo two >> sink; printf 'a\nb\n' >> sink")
	require.NoError(t, err, out)
	writes, truncs := tree.state()
	require.Equal(t, "one\n|two\n|a\nb\n", writes)
	require.Equal(t, 1, truncs)

	table, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	require.Contains(t, string(table), "tracefs "+m.Dir()+" fuse.kprobelab ")
}

func TestRefusalsKeepTheirErrno(t *testing.T) {
	m, _ := mounted(t, nil)
	_, err := os.OpenFile(filepath.Join(m.Dir(), "busy"), os.O_WRONLY|os.O_TRUNC, 0)
	require.ErrorIs(t, err, syscall.EBUSY)
	f, err := os.OpenFile(filepath.Join(m.Dir(), "busy"), os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.ErrorIs(t, os.WriteFile(filepath.Join(m.Dir(), "refusing"), []byte("x"), 0), syscall.EILSEQ)
	_, err = os.ReadFile(filepath.Join(m.Dir(), "nosuch"))
	require.ErrorIs(t, err, syscall.ENOENT)
	out, err := sh(t, m, "echo x > new")
	require.Error(t, err, out)
}

func TestInstances(t *testing.T) {
	m, tree := mounted(t, nil)
	out, err := sh(t, m, "d=$(mktemp -d instances/i.XXXXXX) && test -d $d && rmdir $d && ! test -d $d && mkdir instances/a && ! mkdir instances/a")
	require.NoError(t, err, out)
	tree.mu.Lock()
	defer tree.mu.Unlock()
	require.Equal(t, []string{"instances/a"}, tree.dirs)
}

func TestGuestSeesWhatIsDone(t *testing.T) {
	g := &fakeGuest{}
	m, _ := mounted(t, g)
	_, err := sh(t, m, "echo x > sink; cat hello > /dev/null; true")
	require.NoError(t, err)
	log := g.log()
	for _, want := range []string{"open sh /sink", "write sh x\n", "fork sh", "open cat /hello", "read cat", "close"} {
		require.Contains(t, log, want)
	}
	require.Less(t, strings.Index(log, "write sh"), strings.LastIndex(log, "fork sh"))
	require.Less(t, strings.LastIndex(log, "fork sh"), strings.Index(log, "open cat"))
}

func TestReaderThatWaitsCanBeKilled(t *testing.T) {
	m, tree := mounted(t, nil)
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
		cmd := exec.Command("cat", filepath.Join(m.Dir(), "pipe"))
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		tree.wakeups <- struct{}{}
		var line [5]byte
		_, err = out.Read(line[:])
		require.NoError(t, err)
		require.Equal(t, "line\n", string(line[:]))
		require.NoError(t, cmd.Process.Signal(signal))
		soon(t, "a killed reader", func() { _ = cmd.Wait() })
	}
}

func TestUnmountWhileBusy(t *testing.T) {
	m, _ := mounted(t, nil)
	f, err := os.Open(filepath.Join(m.Dir(), "pipe"))
	require.NoError(t, err)
	held, err := os.Open(filepath.Join(m.Dir(), "hello"))
	require.NoError(t, err)
	ended := make(chan error, 1)
	started := make(chan struct{})
	go func() {
		close(started)
		_, err := f.Read(make([]byte, 10))
		ended <- err
	}()
	<-started
	soon(t, "unmount", func() { require.NoError(t, m.Unmount()) })
	soon(t, "the waiting read", func() { require.Error(t, <-ended) })
	entries, err := os.ReadDir(m.Dir())
	require.NoError(t, err)
	require.Empty(t, entries, "the directory is as it was")
	soon(t, "a read after the unmount", func() { _, _ = held.Read(make([]byte, 10)) })
	require.NoError(t, held.Close())
	require.NoError(t, f.Close())
	soon(t, "the end", m.Wait)
	require.NoError(t, m.Unmount(), "twice")
}

// Bound to another place, the mount has a user that no unmount can end.
func TestUnmountWhileBoundElsewhere(t *testing.T) {
	m, _ := mounted(t, nil)
	if !root() {
		t.Skip("binding needs root")
	}
	other := t.TempDir()
	require.NoError(t, syscall.Mount(m.Dir(), other, "", syscall.MS_BIND, ""))
	soon(t, "unmount", func() { require.NoError(t, m.Unmount()) })
	_, err := os.ReadFile(filepath.Join(other, "hello"))
	require.ErrorIs(t, err, syscall.ENODEV)
	require.NoError(t, syscall.Unmount(other, syscall.MNT_DETACH))
}

func TestUnmountFromOutside(t *testing.T) {
	m, _ := mounted(t, nil)
	if !root() {
		t.Skip("umount needs root; fusermount is tested by Unmount")
	}
	require.NoError(t, syscall.Unmount(m.Dir(), 0))
	soon(t, "the end", m.Wait)
}

// Readers, writers, listers and makers of folders at once, and an unmount in
// their midst: everybody ends.
func TestStress(t *testing.T) {
	m, tree := mounted(t, &fakeGuest{})
	rounds := 300
	if testing.Short() {
		rounds = 50
	}
	var all sync.WaitGroup
	busy := func(n int, do func(i int)) {
		for range n {
			all.Go(func() {
				for i := range rounds {
					do(i)
				}
			})
		}
	}
	at := func(name string) string { return filepath.Join(m.Dir(), name) }
	busy(4, func(int) { _, _ = os.ReadFile(at("hello")) })
	busy(4, func(i int) { _ = os.WriteFile(at("sink"), []byte(fmt.Sprint(i)), 0o644) })
	busy(2, func(int) { _, _ = os.ReadDir(at("events/g")) })
	busy(2, func(i int) {
		_ = os.Mkdir(at(fmt.Sprintf("instances/%d", i)), 0o755)
		_ = os.Remove(at(fmt.Sprintf("instances/%d", i)))
	})
	for range 4 {
		all.Go(func() {
			f, err := os.Open(at("pipe"))
			if err != nil {
				return
			}
			defer func() { _ = f.Close() }()
			for {
				if _, err := f.Read(make([]byte, 5)); err != nil {
					return
				}
			}
		})
	}
	for range 100 {
		tree.wakeups <- struct{}{}
	}
	soon(t, "unmount", func() { require.NoError(t, m.Unmount()) })
	soon(t, "the users of the mount", all.Wait)
}

// The server is killed: users of the mount get errors, and a new mount there fails with advice.
func TestKilledServer(t *testing.T) {
	if dir := os.Getenv("KPROBELAB_TEST_SERVE"); dir != "" {
		if m, err := New(dir, newFakeTree(), nil); err == nil {
			fmt.Println("ready")
			m.Wait()
		}
		return
	}
	_, _ = mounted(t, nil) // skips where that does not work
	if !root() {
		t.Skip("cleaning up after a killed server needs root")
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run", "^TestKilledServer$")
	cmd.Env = append(os.Environ(), "KPROBELAB_TEST_SERVE="+dir)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var ready [6]byte
	_, err = out.Read(ready[:])
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Unmount(dir, syscall.MNT_DETACH)) }()

	reader := exec.Command("cat", filepath.Join(dir, "pipe"))
	require.NoError(t, reader.Start())
	require.NoError(t, cmd.Process.Kill())
	soon(t, "the server", func() { _ = cmd.Wait() })
	soon(t, "the reader", func() { require.Error(t, reader.Wait()) })
	_, err = os.ReadFile(filepath.Join(dir, "hello"))
	require.ErrorIs(t, err, syscall.ENOTCONN)
	_, err = New(dir, newFakeTree(), nil)
	require.ErrorContains(t, err, "a mount whose server has died is there; unmount it first: umount -l ")
}

func TestPlacesThatCannotBeMountedAt(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	_, err := New(file, newFakeTree(), nil)
	require.ErrorContains(t, err, "is not a directory")
	_, err = New(file+"x", newFakeTree(), nil)
	require.ErrorIs(t, err, fs.ErrNotExist)
}

func TestHostErrno(t *testing.T) {
	for _, c := range []struct {
		err  error
		want syscall.Errno
	}{
		{nil, 0},
		{fmt.Errorf("x: %w", errno.EILSEQ), syscall.EILSEQ},
		{context.Canceled, syscall.EINTR},
		{fs.ErrNotExist, syscall.ENOENT},
		{fs.ErrExist, syscall.EEXIST},
		{fs.ErrPermission, syscall.EACCES},
		{fs.ErrInvalid, syscall.EINVAL},
		{fs.ErrClosed, syscall.EBADF},
		{errors.New("other"), syscall.EIO},
	} {
		require.Equal(t, c.want, hostErrno(c.err), "%v", c.err)
	}
}

func TestOverlay(t *testing.T) {
	tree := Overlay(newFakeTree(), map[string]File{
		"hello":          {Mode: 0o400, Open: func(int) (tracing.Handle, error) { return &fakeHandle{data: []byte("over")}, nil }},
		"kprobelab/call": {Mode: 0o600, Open: func(int) (tracing.Handle, error) { return nil, errno.EBUSY }},
	})
	entries, err := tree.ReadDir(".")
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(t, "busy events hello instances kprobelab pipe refusing secret sink", strings.Join(names, " "))
	entries, err = tree.ReadDir("kprobelab")
	require.NoError(t, err)
	require.Len(t, entries, 1)
	i, err := tree.Stat("kprobelab")
	require.NoError(t, err)
	require.True(t, i.IsDir())
	i, err = tree.Stat("hello")
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o400), i.Mode())
	require.Equal(t, "hello", i.Name())
	_, err = tree.OpenFile("kprobelab/call", 0)
	require.ErrorIs(t, err, errno.EBUSY)
	_, err = tree.ReadDir("nosuch")
	require.Error(t, err)
	require.NoError(t, tree.(Directories).Mkdir("instances/x"))
	require.NoError(t, tree.(Directories).Rmdir("instances/x"))
}
