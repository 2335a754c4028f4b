package vmcore

import (
	"errors"
	"os"
)

// Piece is a part of memory as it can be mapped: privately, so that each machine has
// a copy of its own of the pages that it writes to. All its numbers are multiples
// of PageSize.
type Piece struct {
	Range
	// File is nil for a part that is all zeros.
	File *os.File
	Off  int64
}

// Map returns the machine's memory in pieces by ascending address, for mmap. The first
// call copies memory to a file in memory, unless the dump's own file can be mapped;
// later calls return the same. Pages that were left out of the dump read as zeros
// there: Present tells them. The files belong to the Core. If the dump's file is
// truncated while it is mapped, the program ends.
func (c *Core) Map() ([]Piece, error) {
	c.mapLock.Lock()
	defer c.mapLock.Unlock()
	if c.pieces != nil {
		return c.pieces, nil
	}
	list := c.mem.pieces()
	if list == nil {
		var err error
		if list, err = c.copied(); err != nil {
			return nil, inFile(err, c.name)
		}
	}
	c.pieces = list
	return list, nil
}

// copied puts all memory into one spool.
func (c *Core) copied() ([]Piece, error) {
	to, err := c.newSpool()
	if err != nil {
		return nil, err
	}
	var list []Piece
	off := int64(0)
	for _, r := range c.ram {
		list = append(list, Piece{r, to.f, off})
		off += int64(r.Size)
	}
	for _, p := range list {
		if err := c.copyTo(to, p); err != nil {
			return nil, err
		}
	}
	to.end = off
	return list, to.done()
}

// copyTo copies a piece. Pages that are not there stay empty.
func (c *Core) copyTo(to *spool, p Piece) error {
	b := make([]byte, 256*PageSize)
	for at := uint64(0); at < p.Size; {
		n := min(p.Size-at, uint64(len(b)))
		if err := c.readPresent(p.Phys+at, b[:n]); err != nil {
			return err
		}
		if err := to.writeAt(b[:n], p.Off+int64(at)); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// readPresent reads whole pages; pages that were left out read as zeros.
func (c *Core) readPresent(phys uint64, b []byte) error {
	for ; len(b) > 0; phys, b = phys+PageSize, b[PageSize:] {
		var filtered *FilteredError
		err := c.ReadPhys(phys, b[:PageSize])
		if errors.As(err, &filtered) {
			clear(b[:PageSize])
		} else if err != nil {
			return err
		}
	}
	return nil
}
