package vmcore

import (
	"encoding/binary"
	"io"
)

// The flattened form is a dump as it was written to a pipe: a header, then pieces of the
// file, each with its place and length, in big-endian numbers (makedumpfile,
// "FLATTENED FORMAT"; QEMU's kdump formats are in it, too).
const (
	flatMagic      = "makedumpfile\x00"
	flatHeaderSize = 4096
	flatPieceSize  = 16
)

// unwrapFlattened puts the pieces in their places.
func unwrapFlattened(s source, to *spool) error {
	head := make([]byte, flatPieceSize)
	b := make([]byte, 1<<20)
	for at := int64(flatHeaderSize); ; {
		if err := s.within(at, flatPieceSize); err != nil {
			return err
		}
		if _, err := s.ReadAt(head, at); err != nil && err != io.EOF {
			return err
		}
		off, size := int64(binary.BigEndian.Uint64(head)), int64(binary.BigEndian.Uint64(head[8:]))
		if off == -1 && size == -1 {
			return nil
		}
		at += flatPieceSize
		if off < 0 || off > maxUnpacked || size > maxUnpacked {
			return bad("a piece of the flattened dump has %#x bytes at %#x", size, off)
		}
		if err := s.within(at, size); err != nil {
			return err
		}
		for size > 0 {
			n := min(size, int64(len(b)))
			if _, err := s.ReadAt(b[:n], at); err != nil && err != io.EOF {
				return err
			}
			if err := to.overwriteAt(b[:n], off); err != nil {
				return err
			}
			at, off, size = at+n, off+n, size-n
		}
	}
}

// peekFlattened returns the first piece, which is the file's beginning.
func peekFlattened(b []byte) []byte {
	const at = flatHeaderSize + flatPieceSize
	return b[min(at, len(b)):min(at+headSize, len(b))]
}
