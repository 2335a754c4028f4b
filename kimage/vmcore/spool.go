package vmcore

import (
	"bytes"
	"errors"
	"os"
)

// spool is a file of our own that nobody else sees: it holds what had to be
// unpacked. Pages of zeros take no room in it.
type spool struct {
	f *os.File
	// held is how much of it takes room, end is its length.
	held, end int64
}

// maxHeld is the most that a spool may take.
const maxHeld = 16 << 30

var errHeld = errors.New("more than 16 GiB of it would have to be kept unpacked: unpack the file first")

var zeroPage [PageSize]byte

func isZero(b []byte) bool { return bytes.Equal(b, zeroPage[:len(b)]) }

// writeAt writes at the spool's end or after it. Pages of zeros are left out.
func (s *spool) writeAt(b []byte, off int64) error {
	s.end = max(s.end, off+int64(len(b)))
	for len(b) > 0 {
		skip := pages(b, off, true)
		b, off = b[skip:], off+int64(skip)
		n := pages(b, off, false)
		if s.held += int64(n); s.held > maxHeld {
			return errHeld
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
	return &spool{f: f}, nil
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
	if s.held += int64(len(b)); s.held > maxHeld {
		return errHeld
	}
	_, err := s.f.WriteAt(b, off)
	return err
}
