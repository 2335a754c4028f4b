// Package tinyarchive makes small packages, and an archive of them that is signed and served as Debian's is: for tests.
//
// It must not know who reads them.
package tinyarchive

import (
	"archive/tar"
	"bytes"
	"fmt"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

// File is a file of a package: one with Data, or what Type says, as tar has it.
type File struct {
	Name, Data, Target string
	Type               byte
	Mode               int64
}

// Tar makes a tar file.
func Tar(files ...File) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		h := &tar.Header{Name: f.Name, Linkname: f.Target, Typeflag: f.Type, Mode: f.Mode, Size: int64(len(f.Data))}
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		must(w.WriteHeader(h))
		_, err := w.Write([]byte(f.Data))
		must(err)
	}
	must(w.Close())
	return b.Bytes()
}

// Pack packs as a format says: gz, xz, zst, or nothing at all.
func Pack(format string, b []byte) []byte {
	var out bytes.Buffer
	switch format {
	case "gz":
		w := gzip.NewWriter(&out)
		_, err := w.Write(b)
		must(err)
		must(w.Close())
	case "xz":
		w, err := xz.NewWriter(&out)
		must(err)
		_, err = w.Write(b)
		must(err)
		must(w.Close())
	case "zst":
		w, err := zstd.NewWriter(&out)
		must(err)
		_, err = w.Write(b)
		must(err)
		must(w.Close())
	default:
		return b
	}
	return out.Bytes()
}

// Ar makes an archive of ar: a name, then its bytes, and so on.
func Ar(parts ...any) []byte {
	b := bytes.NewBufferString("!<arch>\n")
	for i := 0; i < len(parts); i += 2 {
		data := parts[i+1].([]byte)
		fmt.Fprintf(b, "%-16s%-12d%-6d%-6d%-8o%-10d`\n", parts[i], 0, 0, 0, 0o100644, len(data))
		b.Write(data)
		if len(data)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// Deb is a .deb to be made.
type Deb struct {
	Name, Version string
	// Fields are more lines of its control file.
	Fields string
	// Format packs its parts: gz, xz, zst or "".
	Format string
	Files  []File
	// whole is served in its place.
	whole []byte
}

// Bytes makes the .deb.
func (d *Deb) Bytes() []byte {
	if d.whole != nil {
		return d.whole
	}
	ending := ""
	if d.Format != "" {
		ending = "." + d.Format
	}
	return Ar("debian-binary", []byte("2.0\n"),
		"control.tar"+ending, Pack(d.Format, Tar(File{Name: "./control", Data: d.control()})),
		"data.tar"+ending, Pack(d.Format, Tar(d.Files...)))
}

func (d *Deb) control() string {
	return fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: amd64\n%s", d.Name, d.Version, d.Fields)
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
