package doctor

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/mount"
	"kprobelab/internal/tinyprogram"
)

// root makes a folder with the files of a system.
func root(t *testing.T, files map[string]string) string {
	dir := t.TempDir()
	for name, text := range files {
		at := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o755))
		require.NoError(t, os.WriteFile(at, []byte(text), 0o600))
	}
	return dir
}

func TestKindsOfMachines(t *testing.T) {
	const release = "proc/sys/kernel/osrelease"
	for want, c := range map[string]struct {
		files map[string]string
		env   string
	}{
		"":                       {map[string]string{release: "6.1.0-56-amd64\n"}, ""},
		"WSL2":                   {map[string]string{release: "5.15.153.1-microsoft-standard-WSL2\n", ".dockerenv": ""}, ""},
		"container (Docker)":     {map[string]string{release: "6.1.0-56-amd64\n", ".dockerenv": ""}, ""},
		"container (Podman)":     {map[string]string{"run/.containerenv": ""}, "podman"},
		"container (lxc)":        {nil, "lxc"},
		"container (Kubernetes)": {nil, "KUBERNETES_SERVICE_HOST"},
	} {
		require.Equal(t, want, kind(root(t, c.files), func(name string) string {
			if name == "container" && c.env != "KUBERNETES_SERVICE_HOST" || name == c.env {
				return c.env
			}
			return ""
		}))
	}
}

func TestMemoryAndLibraryOfASystem(t *testing.T) {
	const free = "MemTotal: 8000 kB\nMemAvailable:    2048 kB\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  uint64
	}{
		"no_proc":    {nil, 0},
		"free":       {map[string]string{"proc/meminfo": free}, 2 << 20},
		"limited":    {map[string]string{"proc/meminfo": free, "sys/fs/cgroup/memory.max": "1048576\n", "sys/fs/cgroup/memory.current": "48576\n"}, 1_000_000},
		"unlimited":  {map[string]string{"proc/meminfo": free, "sys/fs/cgroup/memory.max": "max\n", "sys/fs/cgroup/memory.current": "48576\n"}, 2 << 20},
		"over_limit": {map[string]string{"proc/meminfo": free, "sys/fs/cgroup/memory.max": "5\n", "sys/fs/cgroup/memory.current": "6\n"}, 0},
		"damaged":    {map[string]string{"proc/meminfo": "MemAvailable:\n"}, 0},
	} {
		require.Equal(t, c.want, memory(root(t, c.files)), name)
	}
	require.Equal(t, "2.31", libc(root(t, map[string]string{"lib/x86_64-linux-gnu/libc.so.6": "\x00GNU C Library (Debian GLIBC 2.31-13) stable release version 2.31.\n"})))
	require.Empty(t, libc(root(t, map[string]string{"lib64/libc.so.6": "musl"})))
	require.Empty(t, libc(t.TempDir()))
}

func TestProgramsWithoutLibraries(t *testing.T) {
	b, err := tinyprogram.Build(nil, tinyprogram.Function{Name: "_start", Text: "hlt"})
	require.NoError(t, err)
	require.True(t, static(filepath.Join(root(t, map[string]string{"p": string(b)}), "p")))
	require.False(t, static(filepath.Join(t.TempDir(), "nothing")))
}

// A folder that is not there yet is made below one that can be written.
func TestFoldersThatCanBeWritten(t *testing.T) {
	dir := root(t, map[string]string{"file": ""})
	free, err := writable(filepath.Join(dir, "a", "b"))
	require.NoError(t, err)
	require.Positive(t, free)
	_, err = writable(filepath.Join(dir, "file", "a"))
	require.Error(t, err)
	_, err = writable("/proc/kprobelab")
	require.Error(t, err)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1, "the test file is removed")
}

// Facts of this machine, without a home, and with a mirror that has nothing.
func TestLookWithoutAHome(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	f := Look(context.Background(), Options{Offline: true})
	require.NoError(t, f.EngineErr)
	require.Equal(t, nextFolder, Next(f.FolderErr))
	r := f.Report()
	require.True(t, r.Works)

	t.Setenv("HOME", t.TempDir())
	t.Setenv("KPROBELAB_MIRROR", "file:///nowhere/at/all")
	f = Look(context.Background(), Options{})
	require.NoError(t, f.FolderErr)
	require.Equal(t, nextNetwork, Next(f.NetworkErr))
	require.Equal(t, nextMount, Next(mount.ErrNoFUSE))
}
