package vmcore

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"kprobelab/internal/bounded"
)

// spool is a file of our own, which no other process sees, for unpacked data. Pages of zeros take
// no room in it. It is in memory, or on a disk if all spools are too large for that.
type spool struct {
	f *os.File
	// onDisk: it takes room on a disk, and none in memory.
	onDisk bool
	// held counts the bytes of it that take room, end is its length.
	held, end int64
	// holds has a bit for each page that takes room, 64 pages to an entry.
	holds map[int64]uint64
	core  *Core
}

var (
	errHeld   = errors.New("more than 1 GiB of it would have to be kept in memory, and the folder for temporary files is in memory, too: set TMPDIR to a folder on a disk")
	errOnDisk = fmt.Errorf("more than %d GiB of it would have to be kept on the disk", bounded.DumpOnDisk>>30)
)

// room bounds the bytes of all spools of a Core in memory together.
func (c *Core) room() int64 { return cmp.Or(c.most, bounded.DumpHeld) }

// hold counts the pages that n bytes at off will take, without pages already counted.
func (s *spool) hold(off int64, n int) error {
	for p := off / PageSize; p*PageSize < off+int64(n); p++ {
		bit := uint64(1) << (p % 64)
		if s.holds[p/64]&bit != 0 {
			continue
		}
		s.holds[p/64] |= bit
		s.held += PageSize
		if s.onDisk {
			if s.core.spilled += PageSize; s.core.spilled > bounded.DumpOnDisk {
				return errOnDisk
			}
			continue
		}
		if s.core.held += PageSize; s.core.held > s.core.room() {
			if err := s.toDisk(); err != nil {
				return err
			}
		}
	}
	return nil
}

// toDisk moves the spool to a file on a disk.
func (s *spool) toDisk() error {
	make := s.core.disk
	if make == nil {
		make = diskFile
	}
	f, err := make()
	if err != nil {
		return err
	}
	b := new([PageSize]byte)
	for at, set := range s.holds {
		for bit := range int64(64) {
			if set>>bit&1 == 0 {
				continue
			}
			off := (at*64 + bit) * PageSize
			n, err := s.f.ReadAt(b[:], off) // what is not written yet is not there
			if err == nil || errors.Is(err, io.EOF) {
				_, err = f.WriteAt(b[:n], off)
			}
			if err != nil {
				return errors.Join(err, f.Close())
			}
		}
	}
	s.core.held, s.core.spilled = s.core.held-s.held, s.core.spilled+s.held
	s.core.files[slices.Index(s.core.files, s.f)] = f
	old := s.f
	s.f, s.onDisk = f, true
	return old.Close()
}

// diskFile makes a file without a name, on a disk: in the folder that $TMPDIR names, or else where large temporary files
// belong.
func diskFile() (*os.File, error) {
	dir := cmp.Or(os.Getenv("TMPDIR"), largeFiles)
	if inMemory(dir) {
		return nil, errHeld
	}
	f, err := os.CreateTemp(dir, "kprobelab-dump-*")
	if err == nil {
		_ = os.Remove(f.Name()) // Windows keeps the name until the folder is cleared
	}
	return f, err
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
