package archive_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/archive"
	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/profile"
)

func opened(t testing.TB, b []byte) (*archive.Kernel, error) {
	name := filepath.Join(t.TempDir(), "x"+archive.Suffix)
	require.NoError(t, os.WriteFile(name, b, 0o600))
	return archive.Open(name)
}

// Rule: what is no file of ours, or a damaged one, is refused in one sentence.
func TestBadFilesAreRefused(t *testing.T) {
	p, err := archive.Pack(guest(t), nil)
	require.NoError(t, err)
	good := p.Bytes
	changed := func(at int, b byte) []byte {
		out := append([]byte(nil), good...)
		out[at] ^= b
		return out
	}
	newer := append([]byte(nil), good...)
	binary.LittleEndian.PutUint32(newer[8:], 4)
	older := append([]byte(nil), good...)
	binary.LittleEndian.PutUint32(older[8:], 1)
	for name, c := range map[string]struct {
		file []byte
		is   error
		want string
	}{
		"empty":             {nil, archive.ErrFormat, "does not begin as one"},
		"another_file":      {[]byte("\x7fELF and so on, for a while"), archive.ErrFormat, "does not begin as one"},
		"newer":             {newer, archive.ErrNewer, "made by a newer kprobelab: format 4, this one reads 3"},
		"older":             {older, archive.ErrOlder, "made by an older kprobelab: pack the kernel again (format 1, this one reads 2)"},
		"format_0":          {append(append([]byte(nil), good[:8]...), append([]byte{0, 0, 0, 0}, good[12:]...)...), archive.ErrFormat, "format 0"},
		"ends_in_header":    {good[:40], archive.ErrFormat, "the file ends within its header"},
		"ends_in_section":   {good[:len(good)-1], archive.ErrFormat, "the file ends within its part"},
		"more_follows":      {append(append([]byte(nil), good...), 0), archive.ErrFormat, "1 bytes follow its end"},
		"flip_in_header":    {changed(30, 1), archive.ErrFormat, "the header's checksum is wrong"},
		"flip_in_a_section": {changed(len(good)-5, 0x80), archive.ErrFormat, "the checksum of the part"},
		"header_of_4_GiB":   {changed(15, 0xff), archive.ErrFormat, "the file ends within its header"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := opened(t, c.file)
			require.ErrorIs(t, err, c.is)
			require.ErrorContains(t, err, c.want)
			require.ErrorContains(t, err, archive.Suffix) // which file
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

// Rule: a file with entries only answers for entries as the image does, and says that it
// cannot answer for more.
func TestEntriesOnly(t *testing.T) {
	c, _ := profile.Named("6.12")
	img, err := kimage.FromBytes("guest", kprobelab.GuestELF(), &kimage.Options{Profile: c})
	require.NoError(t, err)
	all, err := archive.Pack(img, nil)
	require.NoError(t, err)
	p, err := archive.Pack(img, &archive.Options{Entries: true})
	require.NoError(t, err)
	require.Less(t, len(p.Bytes), len(all.Bytes))
	for _, line := range []string{"vfs_read", "p vfs_read", "nosuch", "r:x gcd", "vfs_read%return"} {
		k, err := opened(t, p.Bytes)
		require.NoError(t, err)
		sameCells(t, cells(t, report.OfImage(img), line), cells(t, k, line))
		require.NoError(t, k.Err(), line)
	}
	k, err := opened(t, p.Bytes)
	require.NoError(t, err)
	id, ok := k.FuncID("vfs_read")
	require.True(t, ok)
	want, _ := report.OfImage(img).FuncID("vfs_read")
	require.Equal(t, want, id)
	require.NoError(t, k.Err())
	for _, line := range []string{"gcd+0x5", "p vfs_read $arg*"} {
		k, err := opened(t, p.Bytes)
		require.NoError(t, err)
		cells(t, k, line)
		require.ErrorIs(t, k.Err(), archive.ErrEntries, line)
	}
}

func TestListIsInTheOrderOfReleases(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"6.12.1-a.0", "6.2.0-a.0", "6.2.0-a.1", "6.2-rc1.0", "10.0.1", "5.10.0-9-a.0", "5.10.0-10-a.0"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+archive.Suffix), nil, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, ".pack-1"), nil, 0o600))
	names := func(patterns ...string) (list []string) {
		files, err := archive.List(dir, patterns...)
		require.NoError(t, err)
		for _, f := range files {
			list = append(list, filepath.Base(f)[:len(filepath.Base(f))-len(archive.Suffix)])
		}
		return list
	}
	require.Equal(t, []string{"5.10.0-9-a.0", "5.10.0-10-a.0", "6.2-rc1.0", "6.2.0-a.0", "6.2.0-a.1", "6.12.1-a.0", "10.0.1"}, names())
	require.Equal(t, []string{"6.2.0-a.0", "6.2.0-a.1"}, names("6.2.0-a"))
	require.Equal(t, []string{"6.2.0-a.1"}, names("6.2.0-a.1"))
	require.Equal(t, []string{"5.10.0-9-a.0", "5.10.0-10-a.0", "6.12.1-a.0"}, names("5.*", "6.12.*"))
	_, err := archive.List(dir, "4.*")
	require.ErrorIs(t, err, archive.ErrNone)
	_, err = archive.List(t.TempDir())
	require.ErrorIs(t, err, archive.ErrNone)
	_, err = archive.List(dir, "[")
	require.Error(t, err)
}

// FuzzOpen: whatever the bytes are, the answer is an error or a kernel that answers. The
// seeds' checksums are made anew, so that the parts themselves are reached.
func FuzzOpen(f *testing.F) {
	p, err := archive.Pack(guest(f), nil)
	require.NoError(f, err)
	f.Add(p.Bytes, uint32(0), byte(0))
	f.Add(p.Bytes[:200], uint32(0), byte(0))
	for at := uint32(0); at < uint32(len(p.Bytes)); at += 1 + uint32(len(p.Bytes))/16 {
		f.Add(p.Bytes, at, byte(0x11))
	}
	f.Fuzz(func(t *testing.T, b []byte, at uint32, flip byte) {
		if len(b) > 0 {
			b = append([]byte(nil), b...)
			b[int(at)%len(b)] ^= flip
		}
		k, err := archive.Parse(b)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		cells(t, k, "vfs_read\ngcd+5\np vfs_read $arg*\np vfs_read a=file->f_flags\n0xffffffff81000010\nr:x gcd\n")
		if err := k.Err(); err != nil {
			require.NotContains(t, err.Error(), "\n")
		}
	})
}
