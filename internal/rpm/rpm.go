// Package rpm reads packages of the RPM Package Manager: their names and their files. Signatures
// are not checked: the user vouches for a file's origin.
//
// It must not know what packages are for.
package rpm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/cavaliergopher/cpio"

	"kprobelab/internal/bounded"
	"kprobelab/internal/unpack"
)

// ErrRPM is a file that is no .rpm, or a damaged one.
var ErrRPM = errors.New("it is no .rpm")

// Magic begins a file.
const Magic = "\xed\xab\xee\xdb"

// RPM is a package's file that is being read.
type RPM struct {
	// Name, Version and Architecture are the package's own statements.
	Name, Version, Architecture string

	data  io.Closer
	files *cpio.Reader
	ended *ended
	// linked are the names of files whose data comes with another of their names, by inode; next are entries that come first.
	linked map[int64][]string
	next   []*unpack.Entry
}

const (
	leadSize    = 96
	headerMagic = "\x8e\xad\xe8\x01"
	entrySize   = 16
)

// The tags of a header that are read (rpmtag.h), and the type of a text.
const (
	tagName         = 1000
	tagVersion      = 1001
	tagRelease      = 1002
	tagArchitecture = 1022
	tagFormat       = 1124
	typeString      = 6
)

// Open reads a package up to its files.
func Open(r io.Reader) (*RPM, error) {
	lead := make([]byte, leadSize)
	if _, err := io.ReadFull(r, lead); err != nil || string(lead[:4]) != Magic {
		return nil, fmt.Errorf("%w: it does not begin as one", ErrRPM)
	}
	// The first header has signatures, and fills up to eight bytes; the second describes the
	// package.
	if _, n, err := header(r); err != nil {
		return nil, err
	} else if _, err := io.CopyN(io.Discard, r, -n&7); err != nil {
		return nil, fmt.Errorf("%w: it is cut off", ErrRPM)
	}
	tags, _, err := header(r)
	if err != nil {
		return nil, err
	}
	p := &RPM{Name: tags[tagName], Version: tags[tagVersion] + "-" + tags[tagRelease], Architecture: tags[tagArchitecture], linked: map[int64][]string{}}
	switch format := tags[tagFormat]; {
	case p.Name == "":
		return nil, fmt.Errorf("%w: it does not say what it is", ErrRPM)
	case format != "" && format != "cpio":
		return nil, fmt.Errorf("%w: its files are in the form %.20q", ErrRPM, format)
	}
	z, err := unpack.Stream(r)
	if err != nil {
		return nil, err
	}
	p.data, p.ended = z, &ended{r: z}
	p.files = cpio.NewReader(p.ended)
	return p, nil
}

// header reads the texts of a header by their tags, and returns its length.
func header(r io.Reader) (map[uint32]string, int64, error) {
	var head [16]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || string(head[:4]) != headerMagic {
		return nil, 0, fmt.Errorf("%w: a header is damaged", ErrRPM)
	}
	be := binary.BigEndian
	entries, size := int64(be.Uint32(head[8:])), int64(be.Uint32(head[12:]))
	if entries*entrySize+size > bounded.PackageHeader {
		return nil, 0, fmt.Errorf("%w: a header has more than %d MiB", ErrRPM, bounded.PackageHeader>>20)
	}
	b, err := bounded.ReadAll(io.LimitReader(r, entries*entrySize+size), bounded.PackageHeader)
	if err != nil || int64(len(b)) != entries*entrySize+size {
		return nil, 0, fmt.Errorf("%w: it is cut off", ErrRPM)
	}
	index, store := b[:entries*entrySize], b[entries*entrySize:]
	tags := map[uint32]string{}
	for ; len(index) > 0; index = index[entrySize:] {
		tag, kind, at := be.Uint32(index), be.Uint32(index[4:]), be.Uint32(index[8:])
		if kind != typeString || int64(at) >= size {
			continue
		}
		text, _, _ := strings.Cut(string(store[at:min(int64(at)+256, size)]), "\x00")
		tags[tag] = text
	}
	return tags, int64(len(b)), nil
}

// ended notes the end of a stream: an archive of cpio ends before it, with an entry that says so.
type ended struct {
	r  io.Reader
	at bool
}

func (e *ended) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	e.at = e.at || err == io.EOF && n == 0
	return n, err
}

// Close implements io.Closer.
func (p *RPM) Close() error { return p.data.Close() }

// Next implements unpack.Package.
func (p *RPM) Next() (*unpack.Entry, error) {
	if len(p.next) > 0 {
		e := p.next[0]
		p.next = p.next[1:]
		return e, nil
	}
	h, err := p.files.Next()
	switch {
	case err == io.EOF && p.ended.at, errors.Is(err, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("%w: its files are cut off", ErrRPM)
	case err == io.EOF:
		if _, err := io.Copy(io.Discard, p.ended); err != nil {
			return nil, err
		}
		return nil, io.EOF
	case errors.Is(err, unpack.ErrPacked):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: its files are damaged (%w)", ErrRPM, err)
	case h.Size < 0:
		return nil, fmt.Errorf("%w: its files are damaged", ErrRPM)
	}
	return p.entry(h), nil
}

// entry makes an entry of a header of cpio. Names are absolute in older packages.
func (p *RPM) entry(h *cpio.Header) *unpack.Entry {
	kinds := map[cpio.FileMode]unpack.Kind{cpio.TypeReg: unpack.File, cpio.TypeDir: unpack.Folder, cpio.TypeSymlink: unpack.Link}
	name := strings.TrimPrefix(h.Name, "/")
	e := &unpack.Entry{Name: name, Target: h.Linkname, Kind: kinds[h.Mode&^cpio.ModePerm&0o170000], Mode: fs.FileMode(h.Mode & 0o777)}
	if e.Kind != unpack.File {
		return e
	}
	e.Size, e.Data = h.Size, p.files
	if h.Links < 2 {
		return e
	}
	// The last of a file's names has its data.
	if h.Size == 0 {
		p.linked[h.Inode] = append(p.linked[h.Inode], name)
		return &unpack.Entry{Name: ".", Kind: unpack.Folder}
	}
	for _, other := range p.linked[h.Inode] {
		p.next = append(p.next, &unpack.Entry{Name: other, Target: name, Kind: unpack.Hard})
	}
	delete(p.linked, h.Inode)
	return e
}
