package debian_test

import (
	"bytes"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/debian"
	"kprobelab/internal/tinyarchive"
	"kprobelab/internal/unpack"
)

// unpacked unpacks a .deb into a folder.
func unpacked(t *testing.T, b []byte) (string, *debian.Deb, error) {
	t.Helper()
	d, err := debian.OpenDeb(bytes.NewReader(b))
	if err != nil {
		return "", nil, err
	}
	defer d.Close()
	dir := t.TempDir()
	return dir, d, unpack.Tree(dir, d, unpack.All)
}

func TestDebs(t *testing.T) {
	for _, format := range []string{"gz", "xz", "zst", ""} {
		t.Run("format_"+format, func(t *testing.T) {
			deb := tinyarchive.Deb{Name: "a", Version: "1-2", Format: format, Files: []tinyarchive.File{{Name: "./x/y", Data: "text"}}}
			dir, d, err := unpacked(t, deb.Bytes())
			require.NoError(t, err)
			require.Equal(t, "a 1-2 amd64", d.Name+" "+d.Version+" "+d.Architecture)
			b, err := os.ReadFile(dir + "/x/y")
			require.NoError(t, err)
			require.Equal(t, "text", string(b))
			// Wherever it is cut off, that is an error.
			whole := deb.Bytes()
			end := len(whole) - 1 // a byte that makes a size even
			if format == "" {
				end -= 1024 // the zeros at the end of a tar file
			}
			if format == "xz" {
				end -= 48 // its index and footer, which are not read
			}
			for n := 0; n < end; n += max(1, min(7, end-n-20)) {
				if _, _, err := unpacked(t, whole[:n]); err == nil {
					t.Fatalf("%d bytes of %d unpack", n, len(whole))
				}
			}
		})
	}
}

func TestFilesThatAreNoDeb(t *testing.T) {
	control := tinyarchive.Tar(tinyarchive.File{Name: "control", Data: "Package: a\nVersion: 1\n"})
	two := []byte("2.0\n")
	for name, c := range map[string]struct {
		b    []byte
		want string
	}{
		"empty":          {nil, "does not begin"},
		"text":           {[]byte("some text, no package"), "does not begin"},
		"other_archive":  {tinyarchive.Ar("a.o/", []byte("x")), "its first part is"},
		"no_parts":       {[]byte("!<arch>\n"), "it has no files"},
		"no_data":        {tinyarchive.Ar("debian-binary", two, "control.tar", control), "it has no files"},
		"no_control":     {tinyarchive.Ar("debian-binary", two, "data.tar", control), "before its name"},
		"nameless":       {tinyarchive.Ar("debian-binary", two, "control.tar", tinyarchive.Tar(tinyarchive.File{Name: "control", Data: "Version: 1\n"}), "data.tar", control), "does not say what it is"},
		"control_a_link": {tinyarchive.Ar("debian-binary", two, "control.tar", tinyarchive.Tar(tinyarchive.File{Name: "control", Type: '2', Target: "/etc/passwd"}), "data.tar", control), "does not say what it is"},
		"size":           {append(tinyarchive.Ar("debian-binary", two), bytes.Repeat([]byte("9"), 60)...), "header of a part is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := debian.OpenDeb(bytes.NewReader(c.b))
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
	t.Run("control_that_unpacks_to_too_much", func(t *testing.T) {
		big := tinyarchive.Pack("gz", append(tinyarchive.Tar(), make([]byte, 200<<20)...))
		_, err := debian.OpenDeb(bytes.NewReader(tinyarchive.Ar("debian-binary", two, "control.tar.gz", big, "data.tar", control)))
		require.Error(t, err)
	})
	t.Run("bomb", func(t *testing.T) {
		bomb := tinyarchive.Deb{Name: "a", Version: "1", Format: "xz", Files: []tinyarchive.File{{Name: "x", Data: string(make([]byte, 16<<20))}}}
		d, err := debian.OpenDeb(bytes.NewReader(bomb.Bytes()))
		require.NoError(t, err)
		defer d.Close()
		e, err := d.Next()
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, e.Data)
		require.ErrorContains(t, err, "more than 100 times its size")
	})
}
