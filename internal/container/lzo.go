package container

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"hash/crc32"
	"io"

	"github.com/anchore/go-lzo"
)

// Flags of the lzop container that tell the fields of a header and of a block. Its
// numbers are big-endian.
const (
	lzopAdlerPlain  = 1 << 0
	lzopAdlerPacked = 1 << 1
	lzopExtra       = 1 << 6
	lzopCRCPlain    = 1 << 8
	lzopCRCPacked   = 1 << 9
	lzopFilter      = 1 << 11

	lzopMagicLen = 9
	// lzopLevels is the container's version from which the header has a level,
	// the version needed and a longer time.
	lzopLevels = 0x940
	// lzopBlock is the largest block that lzop itself reads.
	lzopBlock = 64 << 20
)

var (
	errLzopFilter = errors.New("it went through a filter before it was packed")
	errLzopBlock  = errors.New("a block's size is impossible")
	errLzopCheck  = errors.New("the checksum differs")
)

// lzop reads the container's numbers; past the end, err is set and all is 0.
type lzop struct {
	r   *bytes.Reader
	err error
}

func (r *lzop) take(n int) []byte {
	if r.err != nil || n < 0 || n > r.r.Len() {
		if r.err == nil {
			r.err = io.ErrUnexpectedEOF
		}
		return make([]byte, min(max(n, 0), 8))
	}
	p := make([]byte, n)
	if _, err := io.ReadFull(r.r, p); err != nil {
		r.err = err
	}
	return p
}

func (r *lzop) u8() int     { return int(r.take(1)[0]) }
func (r *lzop) u16() int    { return int(binary.BigEndian.Uint16(r.take(2))) }
func (r *lzop) u32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }

// header passes over the file header and returns its flags.
func (r *lzop) header() uint32 {
	r.take(lzopMagicLen)
	version := r.u16()
	r.take(2) // of the library
	if version >= lzopLevels {
		r.take(2) // the version needed to unpack
	}
	r.take(1) // method: all are the same to the unpacker
	if version >= lzopLevels {
		r.take(1) // level
	}
	flags := r.u32()
	if flags&lzopFilter != 0 {
		r.err = errLzopFilter
	}
	r.take(4 + 4) // mode, time
	if version >= lzopLevels {
		r.take(4)
	}
	r.take(r.u8())
	r.take(4) // the header's checksum
	if flags&lzopExtra != 0 {
		r.take(int(r.u32()) + 4)
	}
	return flags
}

// block unpacks the next block into room, which it returns, made larger where
// need be; io.EOF after the last.
func (r *lzop) block(flags uint32, room []byte) ([]byte, error) {
	plain := r.u32()
	switch {
	case r.err != nil:
		return nil, r.err
	case plain == 0:
		return nil, io.EOF
	}
	packed := r.u32()
	if packed == 0 || packed > plain || plain > lzopBlock {
		return nil, cmp.Or(r.err, errLzopBlock)
	}
	adler, crc := uint32(1), uint32(0)
	if flags&lzopAdlerPlain != 0 {
		adler = r.u32()
	}
	if flags&lzopCRCPlain != 0 {
		crc = r.u32()
	}
	if packed < plain {
		for _, f := range []uint32{lzopAdlerPacked, lzopCRCPacked} {
			if flags&f != 0 {
				r.take(4)
			}
		}
	}
	data := r.take(int(packed))
	if r.err != nil {
		return nil, r.err
	}
	if cap(room) < int(plain) {
		room = make([]byte, plain)
	}
	room = room[:plain]
	if err := unpackLzopBlock(data, room); err != nil {
		return nil, err
	}
	if flags&lzopAdlerPlain != 0 && adler32.Checksum(room) != adler ||
		flags&lzopCRCPlain != 0 && crc32.ChecksumIEEE(room) != crc {
		return nil, errLzopCheck
	}
	return room, nil
}

// unpackLzopBlock fills dst; a block that would not shrink is stored as it is.
func unpackLzopBlock(data, dst []byte) error {
	if len(data) == len(dst) {
		copy(dst, data)
		return nil
	}
	n, err := lzo.Decompress(data, dst)
	if err == nil && n != len(dst) {
		err = fmt.Errorf("a block of %d bytes unpacks to %d", len(dst), n)
	}
	return err
}

// openLzo unpacks an lzop file, the format of the kernel's build.
func openLzo(r *bytes.Reader) (io.Reader, error) {
	l := lzop{r: r}
	flags := l.header()
	var room []byte
	return &blocks{next: func() (b []byte, err error) {
		if b, err = l.block(flags, room); err == nil {
			room = b
		}
		return b, err
	}}, nil
}
