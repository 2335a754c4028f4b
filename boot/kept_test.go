package boot

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/qemu"
	"kprobelab/kernels"
)

// The dump that a word means, where nothing has to be fetched or booted.
func TestDumpsOfWords(t *testing.T) {
	dir := t.TempDir()
	s, err := kernels.Open(&kernels.Options{Dir: filepath.Join(dir, "kept"), Offline: true})
	require.NoError(t, err)
	var without error
	b := &Keeper{Store: s, NoShell: func(why error) { without = why }}
	require.Empty(t, b.shell(t.Context()))
	require.ErrorIs(t, without, kernels.ErrOffline)
	_, err = b.Find(t.Context(), "")
	require.Error(t, err, "there is none, and none can be fetched")

	k, err := s.Add(t.Context(), "../testdata/guest.elf", "")
	require.NoError(t, err)
	require.NoError(t, s.SaveDump(t.Context(), k, kernels.DefaultMachine, func(file string) error { return os.WriteFile(file, []byte("memory"), 0o600) }))
	file := filepath.Join(dir, "a.core")
	require.NoError(t, os.WriteFile(file, []byte("memory"), 0o600))
	for word, want := range map[string]string{"": k.Dump, k.Release: k.Dump, file: file, dir: dir} {
		got, err := b.Find(t.Context(), word)
		require.NoError(t, err, word)
		require.Equal(t, want, got, word)
	}
	_, err = b.Find(t.Context(), "1.2.3")
	require.ErrorIs(t, err, kernels.ErrOffline)

	image := filepath.Join(dir, "vmlinuz")
	require.NoError(t, os.WriteFile(image, []byte("MZ and no more"), 0o600))
	_, err = b.Find(t.Context(), image)
	require.Error(t, err)
	require.NotContains(t, err.Error(), "\n")
}

// With a lock, a dump is the lock's kernel on the lock's machine, and no kernel that is named means the word newest.
func TestDumpsOfALock(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KPROBELAB_QEMU", "")
	t.Setenv("PATH", dir) // no QEMU
	open := func(l *kernels.Lock) *Keeper {
		s, err := kernels.Open(&kernels.Options{Dir: filepath.Join(dir, "kept"), Offline: true, Lock: l})
		require.NoError(t, err)
		return &Keeper{Store: s}
	}
	k, err := open(nil).Store.Add(t.Context(), "../testdata/guest.elf", "")
	require.NoError(t, err)
	pin := &kernels.Pin{Word: "newest", Release: k.Release, SHA256: k.SHA256, Machine: kernels.DefaultMachine}
	b := open(&kernels.Lock{File: "kernels.lock", Kernels: []*kernels.Pin{pin}})

	_, err = b.Find(t.Context(), "newest")
	require.ErrorIs(t, err, qemu.ErrNone)

	save := func(m kernels.Machine) {
		require.NoError(t, b.Store.SaveDump(t.Context(), k, m, func(file string) error { return os.WriteFile(file, []byte("memory"), 0o600) }))
	}
	save(kernels.DefaultMachine)
	for _, word := range []string{"", "newest"} {
		got, err := b.Find(t.Context(), word)
		require.NoError(t, err)
		require.Equal(t, k.Dump, got)
	}
	save(kernels.Machine{CPU: "max", CPUs: 2, Megabytes: 256})
	for word, want := range map[string]bool{"": false, "newest": false, k.Release: true} {
		_, err := b.Find(t.Context(), word)
		require.Equal(t, want, err == nil, "%s: %v", word, err)
		if !want {
			require.ErrorIs(t, err, kernels.ErrLock)
			require.ErrorContains(t, err, "the machine of newest is qemu64, 1 CPU, 128 MiB, and the dump of "+k.Release+" in the cache is of max, 2 CPU, 256 MiB")
		}
	}
	pin.SHA256 = k.SHA256[1:] + "0"
	_, err = b.Find(t.Context(), "")
	require.ErrorIs(t, err, kernels.ErrLock)

	one, err := Key(&kernels.Lock{Kernels: []*kernels.Pin{pin}})
	require.NoError(t, err)
	pin.Megabytes++
	two, err := Key(&kernels.Lock{Kernels: []*kernels.Pin{pin}})
	require.NoError(t, err)
	require.NotEqual(t, one, two)
}
