package running

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/booted"
	"kprobelab/errno"
	"kprobelab/hostfiles"
)

// TestFilesOfTheHost: files that are put into a running kernel have the host's bytes, permissions,
// times and links.
func TestFilesOfTheHost(t *testing.T) {
	dir := t.TempDir()
	large := bytes.Repeat([]byte("0123456789abcdef"), 5<<20/16)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a/b/large"), append(large, 'x'), 0o640))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a/empty"), nil, 0o4755))
	require.NoError(t, os.Symlink("b/large", filepath.Join(dir, "a/link")))
	each(t, func(t *testing.T, k *kernel) {
		s := &hostfiles.Set{}
		require.NoError(t, s.Add(dir, "/opt/x"))
		require.NoError(t, k.Put(s.Files()))
		require.NoError(t, k.Put(s.Files()), "twice")
		got := k.shell("cd /opt/x/a; wc -c <link; md5sum <b/large; stat -c %a b b/large empty; readlink link; tail -c 1 link")
		require.Equal(t, "5242881\na9b33c290ec782d2505583d787a42f29  -\n750\n640\n755\nb/large\nx", got.out)
	})
}

// TestFilesThatAGuestDoesNotTake: each refusal is a sentence with the path, and the kernel goes on.
func TestFilesThatAGuestDoesNotTake(t *testing.T) {
	k := boot(t, "6.1")
	gone := filepath.Join(t.TempDir(), "gone")
	large := filepath.Join(t.TempDir(), "large")
	require.NoError(t, os.WriteFile(large, nil, 0o600))
	require.NoError(t, os.Truncate(large, 1<<30))
	for name, c := range map[string]struct {
		file hostfiles.File
		err  error
		text string
	}{
		"folder_for_a_file":       {hostfiles.File{Path: "/bin", Data: []byte("x")}, errno.EISDIR, "/bin in the guest: "},
		"file_as_a_folder":        {hostfiles.File{Path: "/bin/busybox/x"}, errno.ENOTDIR, "/bin/busybox in the guest: "},
		"folder_that_is_a_file":   {hostfiles.File{Path: "/bin/busybox", Mode: os.ModeDir}, errno.ENOTDIR, "/bin/busybox in the guest: "},
		"file_of_the_kernel":      {hostfiles.File{Path: "/proc/new", Data: []byte("x")}, errno.ENOENT, "/proc/new in the guest: "},
		"file_that_is_not_there":  {hostfiles.File{Path: "/x", From: gone, Size: 1}, os.ErrNotExist, "/x in the guest: "},
		"device":                  {hostfiles.File{Path: "/x", Mode: os.ModeDevice}, errno.EINVAL, "/x in the guest: "},
		"long_name":               {hostfiles.File{Path: "/" + strings.Repeat("x", 256)}, errno.ENAMETOOLONG, ""},
		"more_than_there_is_room": {hostfiles.File{Path: "/tmp/x", From: large, Size: 1 << 30}, errno.ENOSPC, "/tmp/x does not fit into the guest's memory"},
	} {
		k.restore()
		err := k.Put([]hostfiles.File{c.file})
		require.ErrorIs(t, err, c.err, name)
		require.ErrorContains(t, err, c.text, name)
		require.Equal(t, ended{0, "still here\n", ""}, k.shell("echo still here"), name)
	}
}

// TestProgramsOfTheHost: a program of the host runs with the interpreter and the libraries that its headers name.
func TestProgramsOfTheHost(t *testing.T) {
	each(t, func(t *testing.T, k *kernel) {
		dir := t.TempDir()
		script := filepath.Join(dir, "script")
		require.NoError(t, os.WriteFile(script, []byte("#!/usr/bin/env bash\nread -r line; echo \"$line of $BASH\"; exit 3\n"), 0o755))
		s := &hostfiles.Set{}
		path, err := s.Program(script)
		if err != nil {
			t.Skip("no bash on this host: " + err.Error())
		}
		require.Equal(t, script, path)
		require.NoError(t, k.Put(s.Files()))
		var out bytes.Buffer
		code, err := k.Exec(&booted.Program{Args: []string{path}, Env: []string{"PATH=/usr/bin:/bin"}, Stdin: []byte("input\n"), Stdout: &out, Stderr: &out})
		require.NoError(t, err)
		require.Equal(t, 3, code)
		require.Regexp(t, "^input of (/usr)?/bin/bash\n$", out.String())
	})
}

// TestPreparedKernels: the files that tools look for exist after Prepare, and a second call changes
// nothing.
func TestPreparedKernels(t *testing.T) {
	each(t, func(t *testing.T, k *kernel) {
		require.NoError(t, k.Prepare(nil))
		mounts := k.shell("cut -d' ' -f2,3 /proc/mounts").out
		for _, want := range []string{"/sys/fs/bpf bpf", "/sys/fs/cgroup cgroup2", "/sys/kernel/security securityfs", "/sys/kernel/debug debugfs", "/sys/kernel/tracing tracefs", "/dev/pts devpts", "/dev/shm tmpfs"} {
			require.Contains(t, mounts, want+"\n")
		}
		require.Equal(t, ended{0, "x\n1777\nroot:x:0:0:root:/root:/bin/sh\nkprobelab\n", ""},
			k.shell("echo x >/dev/stdout; stat -c %a /var/tmp; head -n 1 /etc/passwd; hostname; ping -c 1 localhost >/dev/null"))
		require.NoError(t, k.Prepare(nil))
		require.Equal(t, mounts, k.shell("cut -d' ' -f2,3 /proc/mounts").out)
	})
}

// TestFilesTakenOut: files and folders come out as the guest has them.
func TestFilesTakenOut(t *testing.T) {
	each(t, func(t *testing.T, k *kernel) {
		require.Zero(t, k.shell("mkdir -p /tmp/o/a; printf 'x\\0y' >/tmp/o/a/f; head -c 3000000 /dev/zero >/tmp/o/z; chmod 750 /tmp/o/z").code)
		list, err := k.Get("/tmp/o/")
		require.NoError(t, err)
		var names []string
		for _, f := range list {
			names = append(names, f.Path)
		}
		require.Equal(t, []string{"/tmp/o", "/tmp/o/a", "/tmp/o/a/f", "/tmp/o/z"}, names)
		require.Equal(t, "x\x00y", string(list[2].Data))
		require.Len(t, list[3].Data, 3_000_000)
		require.Equal(t, os.FileMode(0o750), list[3].Mode)
		list, err = k.Get("/proc/sys/kernel/hostname")
		require.NoError(t, err)
		require.Equal(t, "kprobelab\n", string(list[0].Data), "a file that does not say how long it is")
	})
}

func TestFilesThatAreNotTakenOut(t *testing.T) {
	k := boot(t, "6.1")
	require.Zero(t, k.shell("cd /tmp; ln -s /etc/hostname link; mkfifo pipe; mkdir -p d; ln -s / d/up; mkdir -p $(printf 'x/%.0s' $(seq 70)); truncate -s 300M large").code)
	for name, want := range map[string]string{
		"relative": "relative in the guest: it is not taken out of the guest: its path is not absolute", "/tmp/link": "/tmp/link in the guest: it is not taken out of the guest: it is a link",
		"/tmp/pipe": "it is a pipe", "/dev/null": "it is a device", "/tmp/d": "/tmp/d/up in the guest: it is not taken out of the guest: it is a link",
		"/tmp/../tmp/link": "it is a link", "/tmp/x": "its folders lie too deep in each other", "/tmp/large": "there is more than 256 MiB",
	} {
		_, err := k.Get(name)
		require.ErrorIs(t, err, booted.ErrOut, name)
		require.ErrorContains(t, err, want, name)
	}
	_, err := k.Get("/none")
	require.ErrorIs(t, err, errno.ENOENT)
}
