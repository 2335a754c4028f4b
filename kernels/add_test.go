package kernels_test

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/tinyarchive"
	"kprobelab/kernels"
)

// guest is the embedded guest kernel's image: it opens, and says that it is 6.1.0-kprobelab.
func guest(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../testdata/guest.elf")
	require.NoError(t, err)
	return string(b)
}

const guestRelease = "6.1.0-kprobelab"

func (w *world) file(t *testing.T, name string, b []byte) string {
	t.Helper()
	name = filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(name, b, 0o600))
	return name
}

func TestAddedKernels(t *testing.T) {
	const fedora = "6.9.7-200.fc40.x86_64"
	kernelCore := &tinyarchive.RPM{Name: "kernel-core", Version: "6.9.7", Release: "200.fc40", Format: "zst", Files: []file{
		{Name: "./lib/modules/" + fedora + "/vmlinuz", Data: guest(t)}, {Name: "./lib/modules/" + fedora + "/config", Data: "CONFIG_F=y\n"},
		{Name: "./lib/modules/" + fedora + "/modules.builtin", Data: "builtin"}}}
	modules := &tinyarchive.RPM{Name: "kernel-modules", Version: "6.9.7", Release: "200.fc40", Format: "xz", Files: []file{
		{Name: "./lib/modules/" + fedora + "/kernel/m.ko", Data: "m"}}}
	debug := &tinyarchive.RPM{Name: "kernel-debuginfo", Version: "6.9.7", Release: "200.fc40", Format: "gz", Files: []file{
		{Name: "./usr/lib/debug/lib/modules/" + fedora + "/vmlinux", Data: "symbols"}}}

	w := newWorld(t)
	s := w.open(t)
	k, err := s.Add(t.Context(), w.file(t, "core.rpm", kernelCore.Bytes()), w.file(t, "modules.rpm", modules.Bytes()))
	require.NoError(t, err)
	require.Equal(t, fedora, k.Release)
	require.Equal(t, "kernel-core", k.Package)
	require.FileExists(t, filepath.Join(k.Modules, "modules.builtin"))
	require.FileExists(t, filepath.Join(k.Modules, "kernel/m.ko"))
	k, err = s.Add(t.Context(), w.file(t, "debug.rpm", debug.Bytes()), "")
	require.NoError(t, err)
	b, err := os.ReadFile(k.Debuginfo)
	require.NoError(t, err)
	require.Equal(t, "symbols", string(b))
	require.FileExists(t, k.Configuration)

	ubuntu := &tinyarchive.Deb{Name: "linux-image-unsigned-6.8.0-31-generic", Version: "6.8.0-31.31", Format: "zst", Files: []file{{Name: "./boot/vmlinuz-6.8.0-31-generic", Data: guest(t)}}}
	k, err = s.Add(t.Context(), w.file(t, "u.deb", ubuntu.Bytes()), "")
	require.NoError(t, err)
	require.Equal(t, "6.8.0-31-generic", k.Release)
	found, err := s.Find("6.8")
	require.NoError(t, err)
	require.Equal(t, k, found)

	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "lib/modules", guestRelease, "extra"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "lib/modules", guestRelease, "extra/x.ko"), []byte("x"), 0o600))
	k, err = s.Add(t.Context(), "../testdata/guest.elf", dir)
	require.NoError(t, err)
	require.Equal(t, guestRelease, k.Release)
	require.FileExists(t, filepath.Join(k.Modules, "extra/x.ko"))
	list, err := s.Kept()
	require.NoError(t, err)
	require.Len(t, list, 3)
}

func TestFilesThatAddNoKernel(t *testing.T) {
	deb := func(files ...file) []byte { return (&tinyarchive.Deb{Name: "p", Version: "1", Files: files}).Bytes() }
	whole := deb(file{Name: "./boot/vmlinuz-1.2", Data: guest(t)})
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":            {nil, ""},
		"text":             {[]byte("no kernel at all, just a text of some length"), ""},
		"other_package":    {deb(file{Name: "./usr/bin/x", Data: "x"}), "neither an image, modules nor debugging information"},
		"two_kernels":      {deb(file{Name: "./boot/vmlinuz-1", Data: "x"}, file{Name: "./boot/vmlinuz-2", Data: "x"}), "it has files of 1 and of 2"},
		"modules_alone":    {deb(file{Name: "./lib/modules/1.2/a.ko", Data: "x"}), "the cache has no kernel 1.2"},
		"image_of_nothing": {deb(file{Name: "./boot/vmlinuz-1.2", Data: "x"}), "its image: vmlinuz-1.2:"},
		"image_is_a_link":  {deb(file{Name: "./boot/vmlinuz-1.2", Type: tar.TypeSymlink, Target: "/etc/passwd"}), "cache has no kernel 1.2"},
		"release":          {deb(file{Name: "./boot/vmlinuz-\x1b[2J", Data: "x"}), "is no release"},
		"path_upwards":     {deb(file{Name: "./boot/../../vmlinuz-1.2", Data: "x"}), "leads upwards"},
		"truncated":        {whole[:len(whole)/2], ""},
		"truncated_rpm":    {(&tinyarchive.RPM{Name: "k", Files: []file{{Name: "boot/vmlinuz-1.2", Data: guest(t)}}}).Bytes()[:5000], "cut off"},
		"hostile_rpm":      {(&tinyarchive.RPM{Name: "k", Files: []file{{Name: "../../x", Data: "x"}}}).Bytes(), "leads upwards"},
		"bomb":             {(&tinyarchive.Deb{Name: "p", Version: "1", Format: "gz", Files: []file{{Name: "./boot/vmlinuz-1.2", Data: string(make([]byte, 32<<20))}}}).Bytes(), "more than 100 times its size"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := w.open(t)
			_, err := s.Add(t.Context(), w.file(t, "file", c.b), "")
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			require.NotContains(t, err.Error(), "\x1b")
			require.NotContains(t, err.Error(), ".new-")
			w.nothingLeft(t)
		})
	}
	w := newWorld(t)
	s := w.open(t)
	for _, name := range []string{t.TempDir(), "/dev/null", "/nonexistent", "/dev/zero"} {
		_, err := s.Add(t.Context(), name, "")
		require.Error(t, err, name)
	}
	_, err := s.Add(t.Context(), "../testdata/guest.elf", t.TempDir())
	require.ErrorContains(t, err, "has no modules")
	_, err = s.Add(t.Context(), "../testdata/guest.elf", "/nonexistent")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestPackagesThatAreTooLong(t *testing.T) {
	w := newWorld(t)
	name := w.file(t, "long.deb", []byte("!<arch>\n"))
	require.NoError(t, os.Truncate(name, 8<<30+1))
	_, err := w.open(t).Add(t.Context(), name, "")
	require.ErrorContains(t, err, "it has more than 8 GiB")
	_, err = w.open(t).Import(t.Context(), name)
	require.ErrorContains(t, err, "more than 8 GiB")
}

func TestExportedKernels(t *testing.T) {
	w := newWorld(t)
	s := w.open(t)
	k, err := s.Add(t.Context(), "../testdata/guest.elf", "")
	require.NoError(t, err)
	var out bytes.Buffer
	require.ErrorContains(t, s.Export(t.Context(), k, &out), "was not booted")
	require.NoError(t, s.SaveDump(t.Context(), k, kernels.DefaultMachine, func(file string) error { return os.WriteFile(file, []byte(noise(100_000)), 0o600) }))
	out.Reset()
	require.NoError(t, s.Export(t.Context(), k, &out))

	other := newWorld(t)
	got, err := other.open(t).Import(t.Context(), other.file(t, "k.tar.zst", out.Bytes()))
	require.NoError(t, err)
	require.Equal(t, k.SHA256, got.SHA256)
	require.Equal(t, guestRelease, got.Release)
	b, err := os.ReadFile(got.Dump)
	require.NoError(t, err)
	require.Equal(t, noise(100_000), string(b))
	require.True(t, strings.HasPrefix(got.Dump, other.dir))

	// Those that are damaged or forged.
	exported := tinyarchive.Pack("zst", tinyarchive.Tar(file{Name: "exported.json", Data: `{"kernel":{"release":"1.2"}}`}, file{Name: "1.2.core", Data: "x"}))
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":       {nil, "no files"},
		"text":        {[]byte("some text"), ""},
		"cut_off":     {out.Bytes()[:out.Len()/2], "cut off"},
		"damaged":     {append(append(bytes.Clone(out.Bytes()[:out.Len()/2]), 1, 2, 3), out.Bytes()[out.Len()/2+3:]...), ""},
		"forged_sum":  {exported, "the checksum of 1.2.core differs"},
		"no_manifest": {tinyarchive.Pack("zst", tinyarchive.Tar(file{Name: "x", Data: "x"})), "no exported kernel"},
		"release":     {tinyarchive.Pack("zst", tinyarchive.Tar(file{Name: "exported.json", Data: `{"kernel":{"release":"../../x"}}`})), "does not say which kernel"},
		"other_file":  {tinyarchive.Pack("zst", tinyarchive.Tar(file{Name: "exported.json", Data: `{"kernel":{"release":"1.2"}}`}, file{Name: "evil", Data: "x"})), `it has a file "evil"`},
		"no_dump":     {tinyarchive.Pack("zst", tinyarchive.Tar(file{Name: "exported.json", Data: `{"kernel":{"release":"1.2"}}`})), "lacks the dump"},
		"link":        {tinyarchive.Pack("zst", tinyarchive.Tar(file{Name: "exported.json", Type: tar.TypeSymlink, Target: "/etc/passwd"})), "no exported kernel"},
		"upwards":     {tinyarchive.Pack("zst", tinyarchive.Tar(file{Name: "../exported.json", Data: "{}"})), "leads upwards"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			_, err := w.open(t).Import(t.Context(), w.file(t, "k", c.b))
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			w.nothingLeft(t)
		})
	}
}

func TestTools(t *testing.T) {
	w := newWorld(t)
	w.Suite("trixie",
		&tinyarchive.Deb{Name: "busybox-static", Version: "1", Files: []file{{Name: "./usr/bin/busybox", Data: "shell", Mode: 0o755}}},
		&tinyarchive.Deb{Name: "tool", Version: "1", Fields: "Depends: libtool (>= 2), virtual\n", Files: []file{{Name: "./usr/bin/tool", Data: "old"}}},
		&tinyarchive.Deb{Name: "libtool", Version: "2", Fields: "Provides: virtual\n", Files: []file{{Name: "./usr/lib/x86_64-linux-gnu/libtool.so.1", Data: "lib"},
			{Name: "./usr/lib/x86_64-linux-gnu/libtool.so", Type: tar.TypeSymlink, Target: "libtool.so.1"}, {Name: "./usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", Data: loader, Mode: 0o755}}},
	)
	w.Suite("trixie-backports", &tinyarchive.Deb{Name: "tool", Version: "1.1", Fields: "Depends: libtool\n", Files: []file{{Name: "./usr/bin/tool", Data: "new", Mode: 0o755}}})
	s := w.open(t, func(o *kernels.Options) { o.Dir = filepath.Join(w.dir, "it's a folder") })
	dir, err := s.Tool(t.Context(), "tool", []string{"trixie", "trixie-backports"}, "tool")
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(dir, "usr/bin/tool"))
	require.NoError(t, err)
	require.Equal(t, "new", string(b))
	again, err := s.Tool(t.Context(), "tool", []string{"trixie", "trixie-backports"}, "tool")
	require.NoError(t, err)
	require.Equal(t, dir, again)
	require.Equal(t, 1, w.Asked("pool/libtool_2_amd64.deb"))

	program, err := s.Wrap(dir, "usr/bin/tool", "-L", "a b")
	require.NoError(t, err)
	text, err := os.ReadFile(program)
	require.NoError(t, err)
	require.Contains(t, string(text), `it'\''s a folder`)
	require.Contains(t, string(text), `'-L' 'a b' "$@"`)
	_, err = s.Wrap(dir, "usr/bin/none")
	require.ErrorContains(t, err, "has no usr/bin/none")

	shell, err := s.Busybox(t.Context())
	require.NoError(t, err)
	b, err = os.ReadFile(shell)
	require.NoError(t, err)
	require.Equal(t, "shell", string(b))

	_, err = s.Tool(t.Context(), "other", []string{"trixie"}, "other")
	require.ErrorContains(t, err, "the suites have no other")
}

const loader = "stands for the loader"
