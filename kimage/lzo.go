package kimage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/adler32"
	"hash/crc32"
	"io"

	"github.com/anchore/go-lzo"
)

// Flags of the lzop container that say what is in a header and beside a block.
// Its numbers are big-endian.
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
	b   []byte
	err error
}

func (r *lzop) take(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.b, r.err = nil, io.ErrUnexpectedEOF
		return make([]byte, min(max(n, 0), 8))
	}
	p := r.b[:n]
	r.b = r.b[n:]
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

// block appends the next block to out; done after the last.
func (r *lzop) block(flags uint32, out []byte) (_ []byte, done bool) {
	plain := r.u32()
	if r.err != nil || plain == 0 {
		return out, true
	}
	packed := r.u32()
	if packed == 0 || packed > plain || plain > lzopBlock {
		r.err = errLzopBlock
		return out, true
	}
	size := int(plain)
	if len(out)+size > maxImage {
		r.err = errTooLarge
		return out, true
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
		return out, true
	}
	from := len(out)
	out = grow(out, size)[:from+size]
	if r.err = unpackLzopBlock(data, out[from:]); r.err != nil {
		return out[:from], true
	}
	if flags&lzopAdlerPlain != 0 && adler32.Checksum(out[from:]) != adler ||
		flags&lzopCRCPlain != 0 && crc32.ChecksumIEEE(out[from:]) != crc {
		r.err = errLzopCheck
	}
	return out, r.err != nil
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

// unpackLzo unpacks an lzop file, which is what the kernel's build makes.
func unpackLzo(b []byte, hint int, p *progress) ([]byte, error) {
	r := lzop{b: b}
	flags := r.header()
	out := make([]byte, 0, hint)
	for done := r.err != nil; !done; {
		out, done = r.block(flags, out)
		p.at(int64(len(out)))
	}
	return out, r.err
}
