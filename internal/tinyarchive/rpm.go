package tinyarchive

import (
	"archive/tar"
	"bytes"
	"encoding/binary"

	"github.com/cavaliergopher/cpio"
)

// RPM is an .rpm to be made. Its files are in Format: gz, xz, zst or "".
type RPM struct {
	Name, Version, Release, Format string
	Files                          []File
}

// Bytes makes the .rpm.
func (p *RPM) Bytes() []byte {
	b := make([]byte, 96)
	copy(b, "\xed\xab\xee\xdb\x03\x00")
	b = append(b, header(map[uint32]string{62: "signatures"})...)
	for len(b)%8 != 0 {
		b = append(b, 0)
	}
	b = append(b, header(map[uint32]string{1000: p.Name, 1001: p.Version, 1002: p.Release, 1022: "x86_64", 1124: "cpio"})...)
	return append(b, Pack(p.Format, Cpio(p.Files...))...)
}

func header(tags map[uint32]string) []byte {
	var index, store []byte
	for tag, text := range tags {
		index = binary.BigEndian.AppendUint32(index, tag)
		index = binary.BigEndian.AppendUint32(index, 6)
		index = binary.BigEndian.AppendUint32(index, uint32(len(store)))
		index = binary.BigEndian.AppendUint32(index, 1)
		store = append(store, text+"\x00"...)
	}
	b := []byte("\x8e\xad\xe8\x01\x00\x00\x00\x00")
	b = binary.BigEndian.AppendUint32(b, uint32(len(tags)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(store)))
	return append(append(b, index...), store...)
}

// Cpio makes an archive of cpio.
func Cpio(files ...File) []byte {
	var b bytes.Buffer
	w := cpio.NewWriter(&b)
	modes := map[byte]cpio.FileMode{tar.TypeDir: cpio.TypeDir, tar.TypeSymlink: cpio.TypeSymlink, tar.TypeChar: cpio.TypeChar}
	for i, f := range files {
		mode, ok := modes[f.Type]
		if !ok {
			mode = cpio.TypeReg
		}
		h := &cpio.Header{Name: f.Name, Mode: mode | 0o644, Size: int64(len(f.Data)), Inode: int64(i + 1), Links: 1}
		if mode == cpio.TypeSymlink {
			f.Data, h.Size = f.Target, int64(len(f.Target))
		}
		must(w.WriteHeader(h))
		_, err := w.Write([]byte(f.Data))
		must(err)
	}
	must(w.Close())
	return b.Bytes()
}
