package unpack

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
)

// Tar has the entries of a tar file.
func Tar(r io.Reader) Package { return &tarred{all: r, r: tar.NewReader(r)} }

type tarred struct {
	all   io.Reader
	r     *tar.Reader
	found bool
}

// Next implements Package.
func (t *tarred) Next() (*Entry, error) {
	h, err := t.r.Next()
	if err == io.EOF && !t.found {
		return nil, fmt.Errorf("%w: it has no files", ErrPacked)
	}
	if err == io.EOF {
		// What is packed has its checksum after the last file.
		if _, err := io.Copy(io.Discard, t.all); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
	if err != nil {
		return nil, damaged("tar", err)
	}
	t.found = true
	kinds := map[byte]Kind{tar.TypeReg: File, tar.TypeDir: Folder, tar.TypeSymlink: Link, tar.TypeLink: Hard}
	e := &Entry{Name: h.Name, Target: h.Linkname, Kind: kinds[h.Typeflag], Mode: fs.FileMode(h.Mode & 0o777)}
	if e.Kind == File {
		e.Size, e.Data = h.Size, t.r
	}
	return e, nil
}
