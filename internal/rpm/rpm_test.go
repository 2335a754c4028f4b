package rpm_test

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/rpm"
	"kprobelab/internal/tinyarchive"
	"kprobelab/internal/unpack"
)

// unpacked unpacks an .rpm into a folder.
func unpacked(t *testing.T, b []byte) (string, *rpm.RPM, error) {
	t.Helper()
	p, err := rpm.Open(bytes.NewReader(b))
	if err != nil {
		return "", nil, err
	}
	defer p.Close()
	dir := t.TempDir()
	return dir, p, unpack.Tree(dir, p, unpack.All)
}

func TestRPMs(t *testing.T) {
	for _, format := range []string{"gz", "xz", "zst", ""} {
		t.Run("format_"+format, func(t *testing.T) {
			p := tinyarchive.RPM{Name: "kernel-core", Version: "6.9", Release: "1.fc40", Format: format, Files: []tinyarchive.File{
				{Name: "./lib/modules/6.9/vmlinuz", Data: "text"}, {Name: "./lib/modules/6.9/link", Type: tar.TypeSymlink, Target: "vmlinuz"},
				{Name: "/boot/absolute", Data: "old"},
			}}
			dir, got, err := unpacked(t, p.Bytes())
			require.NoError(t, err)
			require.Equal(t, "kernel-core 6.9-1.fc40 x86_64", got.Name+" "+got.Version+" "+got.Architecture)
			for name, want := range map[string]string{"lib/modules/6.9/link": "text", "boot/absolute": "old"} {
				b, err := os.ReadFile(filepath.Join(dir, name))
				require.NoError(t, err)
				require.Equal(t, want, string(b))
			}
			whole := p.Bytes()
			end := len(whole) - 8
			if format == "xz" {
				end -= 48 // its index and footer, which are not read
			}
			for n := 0; n < end; n += 3 {
				if _, _, err := unpacked(t, whole[:n]); err == nil {
					t.Fatalf("%d bytes of %d unpack", n, len(whole))
				} else {
					require.NotContains(t, err.Error(), "\n")
				}
			}
		})
	}
}

func TestHostileRPMs(t *testing.T) {
	good := (&tinyarchive.RPM{Name: "a", Version: "1", Release: "1", Files: []tinyarchive.File{{Name: "x", Data: "x"}}}).Bytes()
	large := bytes.Clone(good)
	copy(large[96+8:], "\xff\xff\xff\xff")
	negative := bytes.Clone(good)
	copy(negative[bytes.Index(good, []byte("070701"))+54:], "-0000001")
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":         {nil, "does not begin"},
		"deb":           {(&tinyarchive.Deb{Name: "a", Version: "1"}).Bytes(), "does not begin"},
		"large_header":  {large, "more than 64 MiB"},
		"no_name":       {(&tinyarchive.RPM{}).Bytes(), "does not say what it is"},
		"path_upwards":  {(&tinyarchive.RPM{Name: "a", Files: []tinyarchive.File{{Name: "../x", Data: "x"}}}).Bytes(), "leads upwards"},
		"path_in_path":  {(&tinyarchive.RPM{Name: "a", Files: []tinyarchive.File{{Name: "//etc/x", Data: "x"}}}).Bytes(), "is absolute"},
		"device":        {(&tinyarchive.RPM{Name: "a", Files: []tinyarchive.File{{Name: "x", Type: tar.TypeChar}}}).Bytes(), "neither a file"},
		"link_out":      {(&tinyarchive.RPM{Name: "a", Files: []tinyarchive.File{{Name: "x", Type: tar.TypeSymlink, Target: "../x"}}}).Bytes(), "leads out of it"},
		"negative_size": {negative, "damaged"},
		"bomb":          {(&tinyarchive.RPM{Name: "a", Format: "gz", Files: []tinyarchive.File{{Name: "x", Data: strings.Repeat("\x00", 32<<20)}}}).Bytes(), "more than 100 times its size"},
		"no_cpio":       {append(bytes.Clone(good[:len(good)-300]), make([]byte, 300)...), "it is no .rpm"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := unpacked(t, c.b)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}
