package unpack_test

import (
	"archive/tar"
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	"kprobelab/internal/tinyarchive"
	"kprobelab/internal/unpack"
)

type file = tinyarchive.File

// many are entries that are made as they are read.
type many struct {
	n     int
	entry unpack.Entry
}

func (m *many) Next() (*unpack.Entry, error) {
	if m.n--; m.n < 0 {
		return nil, io.EOF
	}
	e := m.entry
	return &e, nil
}

func TestHostilePackages(t *testing.T) {
	evil := file{Name: "evil", Data: "x"}
	long := strings.Repeat("d/", 3000)
	for name, c := range map[string]struct {
		files []file
		want  string
	}{
		"path_upwards":           {[]file{{Name: "../evil", Data: "x"}}, "the path ../evil leads upwards"},
		"path_upwards_inside":    {[]file{{Name: "./a/../../evil", Data: "x"}}, "the path ./a/../../evil leads upwards"},
		"path_upwards_alone":     {[]file{{Name: "..", Type: tar.TypeDir}}, "the path .. leads upwards"},
		"path_upwards_unwanted":  {[]file{{Name: "../unwanted", Data: "x"}}, "leads upwards"},
		"absolute_path":          {[]file{{Name: "/etc/evil", Data: "x"}}, "the path /etc/evil is absolute"},
		"no_name":                {[]file{{Name: "", Data: "x"}}, "has no name"},
		"link_out":               {[]file{{Name: "a/l", Type: tar.TypeSymlink, Target: "../../evil"}}, "the link a/l leads out of it, to ../../evil"},
		"link_upwards":           {[]file{{Name: "l", Type: tar.TypeSymlink, Target: ".."}}, "the link l leads out of it"},
		"link_out_by_a_link":     {[]file{{Name: "d", Type: tar.TypeSymlink, Target: "."}, {Name: "d/d/d/x", Type: tar.TypeSymlink, Target: "../../../evil"}}, "leads out of it"},
		"link_out_by_a_later":    {[]file{{Name: "a/x", Type: tar.TypeSymlink, Target: "y/../../q"}, {Name: "a/y", Type: tar.TypeSymlink, Target: "."}}, "leads out of it"},
		"link_to_itself":         {[]file{{Name: "a", Type: tar.TypeSymlink, Target: "b"}, {Name: "b", Type: tar.TypeSymlink, Target: "a"}, {Name: "a/x", Data: "x"}}, "leads to itself"},
		"link_nowhere":           {[]file{{Name: "a", Type: tar.TypeSymlink}}, "leads nowhere"},
		"hard_link_out":          {[]file{{Name: "h", Type: tar.TypeLink, Target: "../evil"}}, "leads upwards"},
		"hard_link_absolute":     {[]file{{Name: "h", Type: tar.TypeLink, Target: "/etc/passwd"}}, "is absolute"},
		"hard_link_to_a_link":    {[]file{{Name: "l", Type: tar.TypeSymlink, Target: "evil"}, {Name: "h", Type: tar.TypeLink, Target: "l"}}, "which is no file of it"},
		"hard_link_to_nothing":   {[]file{{Name: "h", Type: tar.TypeLink, Target: "none"}}, "which is no file of it"},
		"device":                 {[]file{{Name: "null", Type: tar.TypeChar}}, "null is neither a file, a folder nor a link"},
		"block_device":           {[]file{{Name: "sda", Type: tar.TypeBlock}}, "sda is neither a file"},
		"pipe":                   {[]file{{Name: "p", Type: tar.TypeFifo}}, "p is neither a file"},
		"file_over_a_folder":     {[]file{{Name: "d/x", Data: "x"}, {Name: "d", Data: "x"}}, "d is a folder and a file"},
		"control_characters":     {[]file{{Name: "../\x1b[2J", Data: "x"}}, `\u001b`},
		"path_of_many_folders":   {[]file{{Name: long + "x", Data: "x"}}, "more than 4096 bytes or 100 folders"},
		"path_of_101_folders":    {[]file{{Name: long[:202] + "x", Data: "x"}}, "more than 4096 bytes or 100 folders"},
		"link_too_long":          {[]file{{Name: "l", Type: tar.TypeSymlink, Target: long}}, "leads nowhere"},
		"after_a_file_that_fits": {[]file{evil, {Name: "../evil", Data: "x"}}, "leads upwards"},
	} {
		t.Run(name, func(t *testing.T) {
			above := t.TempDir()
			dir := filepath.Join(above, "dir")
			require.NoError(t, os.Mkdir(dir, 0o700))
			err := unpack.Tree(dir, unpack.Tar(bytes.NewReader(tinyarchive.Tar(c.files...))), func(name string) string {
				if strings.Contains(name, "unwanted") {
					return ""
				}
				return name
			})
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			require.NotContains(t, err.Error(), "\x1b")
			require.Less(t, len(err.Error()), 600)
			list, err := os.ReadDir(above)
			require.NoError(t, err)
			require.Len(t, list, 1, "a file got out")
		})
	}
	t.Run("too_many_files", func(t *testing.T) {
		err := unpack.Tree(t.TempDir(), &many{bounded.PackageEntries + 1, unpack.Entry{Name: "d", Kind: unpack.Folder}}, unpack.All)
		require.ErrorIs(t, err, unpack.ErrHostile)
		require.ErrorContains(t, err, "more than 200000 files")
	})
	t.Run("too_many_bytes", func(t *testing.T) {
		nothing := func(string) string { return "" }
		require.NoError(t, unpack.Tree(t.TempDir(), &many{2, unpack.Entry{Name: "f", Kind: unpack.File, Size: bounded.PackageBytes / 2}}, nothing))
		err := unpack.Tree(t.TempDir(), &many{2, unpack.Entry{Name: "f", Kind: unpack.File, Size: bounded.PackageBytes/2 + 1}}, nothing)
		require.ErrorContains(t, err, "more than 32 GiB")
	})
}

// A package may have all kinds of links of Debian's packages that stay inside.
func TestLinksOfPackages(t *testing.T) {
	dir := t.TempDir()
	err := unpack.Tree(dir, unpack.Tar(bytes.NewReader(tinyarchive.Tar(
		file{Name: "./", Type: tar.TypeDir},
		file{Name: "./lib", Type: tar.TypeSymlink, Target: "usr/lib"},
		file{Name: "./lib/one.so.1", Data: "one", Mode: 0o4755},
		file{Name: "./usr/lib/one.so", Type: tar.TypeSymlink, Target: "one.so.1"},
		file{Name: "./usr/lib/two.so", Type: tar.TypeLink, Target: "./usr/lib/one.so.1"},
		file{Name: "./usr/share/doc/a", Type: tar.TypeSymlink, Target: "/usr/lib/one.so.1"},
		file{Name: "./usr/share/doc/b", Type: tar.TypeSymlink, Target: "/usr/none"},
		file{Name: "./usr", Type: tar.TypeSymlink, Target: "elsewhere"},
	))), unpack.All)
	require.NoError(t, err)
	for _, name := range []string{"lib/one.so", "usr/lib/two.so", "usr/share/doc/a"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, "one", string(b))
	}
	st, err := os.Stat(filepath.Join(dir, "usr/lib/one.so.1"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o755), st.Mode())
	to, err := os.Readlink(filepath.Join(dir, "usr/share/doc/b"))
	require.NoError(t, err)
	require.Equal(t, "../../../usr/none", to)
}

func TestStreams(t *testing.T) {
	text := make([]byte, 1<<20)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range text {
		text[i] = byte(random.IntN(8))
	}
	for _, format := range []string{"gz", "xz", "zst", ""} {
		t.Run("format_"+format, func(t *testing.T) {
			packed := tinyarchive.Pack(format, text)
			read := func(b []byte) ([]byte, error) {
				r, err := unpack.Stream(bytes.NewReader(b))
				if err != nil {
					return nil, err
				}
				defer r.Close()
				return io.ReadAll(r)
			}
			got, err := read(packed)
			require.NoError(t, err)
			require.Equal(t, text, got)
			if format == "" {
				return
			}
			for _, n := range []int{len(packed) / 2, len(packed) / 3, 20} {
				_, err := read(packed[:n])
				require.ErrorIs(t, err, unpack.ErrPacked)
				require.ErrorContains(t, err, "cut off")
			}
			damaged := bytes.Clone(packed)
			damaged[len(damaged)/2] ^= 0x55
			_, err = read(damaged)
			require.ErrorIs(t, err, unpack.ErrPacked)
			require.NotContains(t, err.Error(), "\n")
			_, err = read(tinyarchive.Pack(format, make([]byte, 64<<20)))
			require.ErrorContains(t, err, "more than 100 times its size")
		})
	}
}
