package vmcore

import (
	"bytes"
	"cmp"
	"errors"
	"os"

	"kprobelab/internal/bounded"
)

// spool is a file of our own that nobody else sees: it holds what had to be
// unpacked. Pages of zeros take no room in it.
type spool struct {
	f *os.File
	// held is how much of it takes room, end is its length.
	held, end int64
	// holds has a bit for each page that takes room, 64 pages to an entry.
	holds map[int64]uint64
	core  *Core
}

var errHeld = errors.New("more than 1 GiB of it would have to be kept in memory: unpack the file into an ELF dump, which is mapped")

// room is how many bytes all spools of a Core may take together.
func (c *Core) room() int64 { return cmp.Or(c.most, bounded.DumpHeld) }

// hold counts the pages that n bytes at off will take, but for those that are counted.
func (s *spool) hold(off int64, n int) error {
	for p := off / PageSize; p*PageSize < off+int64(n); p++ {
		bit := uint64(1) << (p % 64)
		if s.holds[p/64]&bit != 0 {
			continue
		}
		s.holds[p/64] |= bit
		s.held += PageSize
		if s.core.held += PageSize; s.core.held > s.core.room() {
			return errHeld
		}
	}
	return nil
}

var zeroPage [PageSize]byte

func isZero(b []byte) bool { return bytes.Equal(b, zeroPage[:len(b)]) }

// writeAt writes at the spool's end or after it. Pages of zeros are left out.
func (s *spool) writeAt(b []byte, off int64) error {
	s.end = max(s.end, off+int64(len(b)))
	for len(b) > 0 {
		skip := pages(b, off, true)
		b, off = b[skip:], off+int64(skip)
		n := pages(b, off, false)
		if err := s.hold(off, n); err != nil {
			return err
		}
		if _, err := s.f.WriteAt(b[:n], off); err != nil {
			return err
		}
		b, off = b[n:], off+int64(n)
	}
	return nil
}

// pages is the length of the run of pages at the start of b that are zero, or that
// are not; off is the place of b.
func pages(b []byte, off int64, zero bool) int {
	at := 0
	for at < len(b) {
		n := min(len(b)-at, PageSize-int((off+int64(at))%PageSize))
		if isZero(b[at:at+n]) != zero {
			break
		}
		at += n
	}
	return at
}

// done gives the file its length.
func (s *spool) done() error { return s.f.Truncate(s.end) }

// newSpool makes an empty one, which the Core closes.
func (c *Core) newSpool() (*spool, error) {
	f, err := hiddenFile()
	if err != nil {
		return nil, err
	}
	c.files = append(c.files, f)
	return &spool{f: f, holds: map[int64]uint64{}, core: c}, nil
}

// spooled unpacks a source.
func (c *Core) spooled(s source, unwrap func(source, *spool) error) (source, error) {
	to, err := c.newSpool()
	if err != nil {
		return source{}, err
	}
	if err := unwrap(s, to); err != nil {
		return source{}, err
	}
	return source{to.f, to.end, to.f}, to.done()
}

// overwriteAt writes anywhere, zeros too.
func (s *spool) overwriteAt(b []byte, off int64) error {
	s.end = max(s.end, off+int64(len(b)))
	if err := s.hold(off, len(b)); err != nil {
		return err
	}
	_, err := s.f.WriteAt(b, off)
	return err
}
