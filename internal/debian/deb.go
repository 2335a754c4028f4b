package debian

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/unpack"
)

// ErrDeb is a file that is no .deb, or a damaged one.
var ErrDeb = errors.New("it is no .deb")

// Deb is a package's file that is being read: deb(5).
type Deb struct {
	// Name, Version and Architecture are the package's own statements.
	Name, Version, Architecture string
	unpack.Package
	data io.Closer
}

// member is the header of a file in an ar archive (ar(5)): name, date, owner, group, mode, size, end.
const (
	arMagic  = "!<arch>\n"
	arHeader = 60
)

// OpenDeb reads a package up to its files.
func OpenDeb(r io.Reader) (*Deb, error) {
	magic := make([]byte, len(arMagic))
	if _, err := io.ReadFull(r, magic); err != nil || string(magic) != arMagic {
		return nil, fmt.Errorf("%w: it does not begin as an archive of ar", ErrDeb)
	}
	d := &Deb{}
	for n := 0; ; n++ {
		name, size, err := arMember(r)
		if err != nil {
			return nil, err
		}
		body := io.LimitReader(r, size)
		switch {
		case n == 0 && name != "debian-binary":
			return nil, fmt.Errorf("%w: its first part is %.20q", ErrDeb, name)
		case strings.HasPrefix(name, "control.tar"):
			if err := d.control(body); err != nil {
				return nil, err
			}
		case strings.HasPrefix(name, "data.tar"):
			if d.Name == "" {
				return nil, fmt.Errorf("%w: its files come before its name", ErrDeb)
			}
			z, err := unpack.Stream(&whole{body, size})
			if err != nil {
				return nil, err
			}
			d.Package, d.data = unpack.Tar(z), z
			return d, nil
		}
		// What control.tar's reader has left, and the byte that makes its size even.
		if left, err := io.Copy(io.Discard, body); err != nil || left > 0 && body.(*io.LimitedReader).N > 0 {
			return nil, fmt.Errorf("%w: it is cut off", ErrDeb)
		}
		if size%2 == 1 {
			_, _ = io.CopyN(io.Discard, r, 1)
		}
	}
}

// Close implements io.Closer.
func (d *Deb) Close() error { return d.data.Close() }

func arMember(r io.Reader) (string, int64, error) {
	head := make([]byte, arHeader)
	switch _, err := io.ReadFull(r, head); {
	case err == io.EOF:
		return "", 0, fmt.Errorf("%w: it has no files", ErrDeb)
	case err != nil:
		return "", 0, fmt.Errorf("%w: it is cut off", ErrDeb)
	}
	size, err := strconv.ParseInt(strings.TrimSpace(string(head[48:58])), 10, 64)
	if err != nil || size < 0 || string(head[58:]) != "`\n" {
		return "", 0, fmt.Errorf("%w: the header of a part is damaged", ErrDeb)
	}
	return strings.TrimSuffix(strings.TrimSpace(string(head[:16])), "/"), size, nil
}

// whole fails where a part ends before its size.
type whole struct {
	r    io.Reader
	left int64
}

func (w *whole) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if w.left -= int64(n); err == io.EOF && w.left > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// control reads the package's name and version.
func (d *Deb) control(r io.Reader) error {
	z, err := unpack.Stream(r)
	if err != nil {
		return err
	}
	defer z.Close()
	files := unpack.Tar(bounded.Reader(z, bounded.PackageHeader))
	for {
		e, err := files.Next()
		if err == io.EOF {
			return fmt.Errorf("%w: it does not say what it is", ErrDeb)
		}
		if err != nil {
			return err
		}
		if strings.TrimPrefix(e.Name, "./") != "control" || e.Data == nil {
			continue
		}
		text, err := bounded.ReadAll(e.Data, bounded.SourcesFile)
		if err != nil {
			return err
		}
		return stanzas(bytes.NewReader(text), nil, func(f map[string]string) error {
			d.Name, d.Version, d.Architecture = f["package"], f["version"], f["architecture"]
			if d.Name == "" {
				return fmt.Errorf("%w: it does not say what it is", ErrDeb)
			}
			return nil
		})
	}
}
