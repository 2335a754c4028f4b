package archive_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/archive"
	"kprobelab/internal/report"
	"kprobelab/kimage"
)

// release is the guest kernel as of another release, with a nop of n bytes at gcd.
func release(t testing.TB, name string, n int) *kimage.Image {
	was := guest(t).Fact("release").Value
	whole := name + was[len(name):]
	nops := map[int][]byte{3: {0x0f, 0x1f, 0}, 4: {0x0f, 0x1f, 0x40, 0}, 5: {0x0f, 0x1f, 0x44, 0, 0}, 7: {0x0f, 0x1f, 0x80, 0, 0, 0, 0}}
	b := bytes.ReplaceAll(elfWith(t, "gcd", nops[n]), []byte("Linux version "+was), []byte("Linux version "+whole))
	img, err := kimage.FromBytes("guest", b, nil)
	require.NoError(t, err)
	require.Equal(t, whole, img.Fact("release").Value)
	return img
}

// folder packs images, and tells each one's file.
func folder(t testing.TB, images ...*kimage.Image) (dir string, files []string) {
	dir = t.TempDir()
	for _, img := range images {
		p, err := archive.Pack(img, nil)
		require.NoError(t, err)
		name, err := p.Write(dir)
		require.NoError(t, err)
		files = append(files, name)
	}
	return dir, files
}

// two levels of one series, a level of the next one, and two of that.
func fiveKernels(t testing.TB) []*kimage.Image {
	return []*kimage.Image{release(t, "6.1.9", 3), release(t, "6.1.8", 4), release(t, "6.2.5", 5), release(t, "6.2.4", 7), release(t, "6.2.3", 4)}
}

// Rule: a difference answers as the file did that it was made of, also where what it is
// a difference from is one itself; and that file can be had back, to the byte.
func TestDifferencesAnswerTheSame(t *testing.T) {
	images := fiveKernels(t)
	dir, files := folder(t, images...)
	before := map[string][]byte{}
	for _, name := range files {
		b, err := os.ReadFile(name)
		require.NoError(t, err)
		before[name] = b
	}
	bases := map[string]string{}
	require.NoError(t, archive.Shrink(dir, func(r archive.Rewritten) error {
		require.Len(t, before[r.File], r.Before)
		info, err := os.Stat(r.File)
		require.NoError(t, err)
		require.Equal(t, int(info.Size()), r.After)
		require.Less(t, r.After*3, r.Before)
		bases[r.File] = filepath.Join(dir, r.Base)
		return nil
	}))
	require.Equal(t, map[string]string{files[1]: files[0], files[2]: files[0], files[3]: files[2], files[4]: files[2]}, bases)

	for i, img := range images {
		k, err := archive.Open(files[i])
		require.NoError(t, err)
		lines := "vfs_read\np vfs_read $arg*\nr:x gcd\nnosuch\n"
		for off := range 24 {
			lines += fmt.Sprintf("gcd+%d\nvfs_read+%d\n", off, off)
		}
		sameCells(t, cells(t, report.OfImage(img), lines), cells(t, k, lines))
		require.NoError(t, k.Err())
		_, err = archive.ReadHeader(files[i])
		require.NoError(t, err)
	}

	again := func(archive.Rewritten) error { t.Fatal("nothing was left to do"); return nil }
	require.NoError(t, archive.Shrink(dir, again))
	n := 0
	require.NoError(t, archive.Whole(dir, func(r archive.Rewritten) error { n++; return nil }))
	require.Equal(t, 4, n)
	require.NoError(t, archive.Whole(dir, again))
	for name, want := range before {
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), name)
	}
}

// Rule: a kernel that comes later is a difference from the one that the others need.
func TestShrinkGoesOn(t *testing.T) {
	images := fiveKernels(t)
	dir, files := folder(t, release(t, "6.1.7", 5), images[1])
	ignore := func(archive.Rewritten) error { return nil }
	require.NoError(t, archive.Shrink(dir, ignore))
	p, err := archive.Pack(images[0], nil)
	require.NoError(t, err)
	_, err = p.Write(dir)
	require.NoError(t, err)
	n := 0
	require.NoError(t, archive.Shrink(dir, func(r archive.Rewritten) error {
		n++
		require.Equal(t, images[0].Fact("release").Value, r.Release)
		require.Equal(t, filepath.Base(files[1]), r.Base)
		return nil
	}))
	require.Equal(t, 1, n)
}

// Rule: a difference whose base is gone, was packed again, or cannot be one is refused in
// one sentence, never read as something else.
func TestDifferencesWithoutTheirBase(t *testing.T) {
	from, names := folder(t, release(t, "6.1.9", 3), release(t, "6.1.8", 4))
	require.NoError(t, archive.Shrink(from, func(archive.Rewritten) error { return nil }))
	other, err := archive.Pack(release(t, "6.1.7", 7), nil)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		spoil func(t *testing.T, base, file string)
		is    error
		want  string
	}{
		"gone":    {func(t *testing.T, base, _ string) { require.NoError(t, os.Remove(base)) }, archive.ErrBase, "as it was: pack the kernel again (6.1.9"},
		"damaged": {func(t *testing.T, base, _ string) { require.NoError(t, os.WriteFile(base, nil, 0o600)) }, archive.ErrBase, "does not begin as one"},
		"another": {func(t *testing.T, base, _ string) {
			require.NoError(t, os.WriteFile(base, other.Bytes, 0o600))
		}, archive.ErrBase, "was packed again"},
		"itself":      {func(t *testing.T, base, file string) { rebase(t, file, filepath.Base(file)) }, archive.ErrBase, "more than 2 other files"},
		"in_a_circle": {func(t *testing.T, base, file string) { rebase(t, base, filepath.Base(file)) }, archive.ErrBase, "more than 2 other files"},
		"elsewhere":   {func(t *testing.T, _, file string) { rebase(t, file, "../x.kpack") }, archive.ErrFormat, `"../x.kpack" is no file of an archive`},
		"no_archive":  {func(t *testing.T, _, file string) { rebase(t, file, "passwd") }, archive.ErrFormat, `"passwd" is no file of an archive`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.CopyFS(dir, os.DirFS(from)))
			base, file := filepath.Join(dir, filepath.Base(names[0])), filepath.Join(dir, filepath.Base(names[1]))
			c.spoil(t, base, file)
			_, err := archive.ReadHeader(file)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, filepath.Base(file))
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func rebase(t *testing.T, file, base string) {
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, archive.WithBase(t, b, base), 0o600))
}
