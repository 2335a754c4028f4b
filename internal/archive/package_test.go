package archive_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/archive"
	"kprobelab/internal/report"
	"kprobelab/kimage"
)

// modules returns a folder with the guest kernel's module, and with files that are no modules.
func modules(t testing.TB) string {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "kernel"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "kernel", "demo.ko"), kprobelab.GuestModule(), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "modules.dep"), []byte("kernel/demo.ko:"), 0o600))
	return dir
}

// Rule: a probe that only a module of the package can have is answered as by the image
// with that module loaded; all else as by the image without it.
func TestModulesOfThePackage(t *testing.T) {
	dir := modules(t)
	plain := guest(t)
	loaded, err := kimage.FromBytes("guest", kprobelab.GuestELF(), &kimage.Options{Modules: []string{filepath.Join(dir, "kernel", "demo.ko")}})
	require.NoError(t, err)
	img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), &kimage.Options{Package: dir})
	require.NoError(t, err)
	require.Equal(t, []string{"demo"}, img.Packaged())
	k, _ := packed(t, img)
	require.Equal(t, 1, k.Header.Packaged)
	require.Empty(t, k.Modules())
	require.Equal(t, report.OfImage(plain).Tracepoints(), k.Tracepoints())

	own := 0
	for _, s := range loaded.Symbols() {
		if s.Module == "" || !loaded.InText(s.Addr) || len(plain.Lookup(s.Name)) > 0 {
			continue
		}
		own++
		require.Equal(t, []string{"demo"}, k.Package(s.Name))
		for _, line := range []string{s.Name, s.Name + "+4", s.Name + "+5", "demo:" + s.Name, "p " + s.Name + " $arg*", "r:x demo:" + s.Name, "p " + s.Name + "+1"} {
			want, got := cells(t, report.OfImage(loaded), line), cells(t, k, line)
			require.Equal(t, report.FoundPackage, got[0].Cells[0].Found, line)
			want[0].Cells[0].Found, want[0].Cells[0].Others = report.FoundPackage, []string{"demo"}
			sameCells(t, want, got)
		}
	}
	require.NotZero(t, own)
	for _, line := range []string{"vfs_read", "nosuch", "p demo:nosuch", "p nomod:vfs_read"} {
		sameCells(t, cells(t, report.OfImage(plain), line), cells(t, k, line))
	}
	require.NoError(t, k.Err())
	_, err = k.With("nosuch")
	require.ErrorContains(t, err, "has no module nosuch")
}

// Rule: a file with the modules is another thing to keep than one without.
func TestKeptWithModules(t *testing.T) {
	out := t.TempDir()
	o := &archive.Options{}
	p, err := archive.Pack(guest(t), o)
	require.NoError(t, err)
	_, err = p.Write(out)
	require.NoError(t, err)
	_, ok := archive.Kept(guest(t), o, out)
	require.True(t, ok)
	with, err := kimage.FromBytes("guest", kprobelab.GuestELF(), &kimage.Options{Package: modules(t)})
	require.NoError(t, err)
	_, ok = archive.Kept(with, o, out)
	require.False(t, ok)
}
