// Package xz unpacks what xz has packed, as kernels' build and packages have it: LZMA2, and the x86 filter in front
// of it, which Go's xz package refuses. So the container is read here (The .xz File Format), and only the LZMA2
// data goes through that package.
//
// It must not know what is packed.
package xz

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"slices"

	"github.com/ulikunitz/xz/lzma"

	"kprobelab/internal/bounded"
)

// Magic begins a file.
const Magic = "\xfd7zXZ\x00"

const (
	headerSize = 12

	filterX86   = 0x04
	filterLzma2 = 0x21
)

var (
	errHeader = errors.New("a block header is damaged")
	errCheck  = errors.New("the checksum differs")
)

// Source is a packed stream. No byte past the stream is taken from it.
type Source interface {
	io.Reader
	io.ByteReader
}

// counted counts what is read of a source.
type counted struct {
	Source
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Source.Read(p)
	c.n += int64(n)
	return n, err
}

func (c *counted) ReadByte() (byte, error) {
	b, err := c.Source.ReadByte()
	if err == nil {
		c.n++
	}
	return b, err
}

// reader reads the first stream of a file.
type reader struct {
	r     *counted
	check byte
	// block reads the unpacked bytes of the current block; nil before it. sum computes its checksum; nil if the
	// kind of checksum is unknown.
	block io.Reader
	sum   hash.Hash
	// before is how much of the file was read at the block's data.
	before int64
}

// NewReader unpacks the first stream of r.
func NewReader(r Source) (io.Reader, error) {
	head := make([]byte, headerSize)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	return &reader{r: &counted{Source: r}, check: head[7] & 15}, nil
}

// Read implements io.Reader.
func (x *reader) Read(p []byte) (int, error) {
	for {
		if x.block == nil {
			if err := x.begin(); err != nil {
				return 0, err
			}
		}
		n, err := x.block.Read(p)
		if x.sum != nil {
			x.sum.Write(p[:n])
		}
		if err == io.EOF {
			x.block = nil
			err = x.end()
		}
		if n > 0 || err != nil {
			return n, err
		}
	}
}

// begin reads a block's header; io.EOF where the index follows.
func (x *reader) begin() error {
	size, err := x.r.ReadByte()
	switch {
	case err != nil:
		return io.ErrUnexpectedEOF
	case size == 0: // the index: no more blocks
		return io.EOF
	}
	head := make([]byte, int(size)*4+3)
	if _, err := io.ReadFull(x.r, head); err != nil {
		return io.ErrUnexpectedEOF
	}
	body, sum := head[:len(head)-4], binary.LittleEndian.Uint32(head[len(head)-4:])
	if crc32.Update(crc32.ChecksumIEEE([]byte{size}), crc32.IEEETable, body) != sum {
		return errHeader
	}
	block, err := parseBlock(body)
	if err != nil {
		return err
	}
	x.before, x.sum = x.r.n, sumOf(x.check)
	x.block, err = lzma.Reader2Config{DictCap: max(block.dictCap, lzma.MinDictCap)}.NewReader2(x.r)
	if err == nil && block.x86 {
		x.block = &x86Filter{r: x.block, prev: -1}
	}
	return err
}

// end passes over the padding and compares the checksum after it.
func (x *reader) end() error {
	if _, err := io.CopyN(io.Discard, x.r, -(x.r.n-x.before)&3); err != nil {
		return io.ErrUnexpectedEOF
	}
	sizes := [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}
	want := make([]byte, sizes[x.check])
	if _, err := io.ReadFull(x.r, want); err != nil {
		return io.ErrUnexpectedEOF
	}
	if x.sum == nil {
		return nil
	}
	got := x.sum.Sum(nil) // big-endian; the file's is little-endian
	slices.Reverse(got)
	if !bytes.Equal(got, want) {
		return errCheck
	}
	return nil
}

// sumOf is the checksum of that number where it is a CRC.
func sumOf(check byte) hash.Hash {
	switch check {
	case 1:
		return crc32.NewIEEE()
	case 4:
		return crc64.New(crc64.MakeTable(crc64.ECMA))
	}
	return nil
}

// blockHeader holds the fields of a block header.
type blockHeader struct {
	x86     bool
	dictCap int
}

func parseBlock(b []byte) (blockHeader, error) {
	var block blockHeader
	flags := b[0]
	b = b[1:]
	for _, bit := range []byte{0x40, 0x80} { // the two sizes are not needed
		if flags&bit != 0 {
			if _, ok := number(&b); !ok {
				return block, errHeader
			}
		}
	}
	for range int(flags&3) + 1 {
		id, ok1 := number(&b)
		n, ok2 := number(&b)
		if !ok1 || !ok2 || n > uint64(len(b)) {
			return block, errHeader
		}
		props := b[:n]
		b = b[n:]
		switch {
		case id == filterX86 && n == 0 && block.dictCap == 0:
			block.x86 = true
		case id == filterLzma2 && n == 1 && block.dictCap == 0:
			size, err := lzma.DecodeDictCap(props[0])
			if err != nil {
				return block, errHeader
			}
			block.dictCap = int(min(size, bounded.UnpackWindow))
		default:
			return block, fmt.Errorf("filter %#x is not supported", id)
		}
	}
	if block.dictCap == 0 {
		return block, errHeader
	}
	return block, nil
}

// number reads a number of seven bits a byte, low bits first.
func number(b *[]byte) (uint64, bool) {
	var v uint64
	for i := 0; i < 9 && i < len(*b); i++ {
		c := (*b)[i]
		v |= uint64(c&0x7f) << (7 * i)
		if c&0x80 == 0 {
			*b = (*b)[i+1:]
			return v, true
		}
	}
	return 0, false
}

// x86Filter turns the absolute targets of E8 and E9 back into relative ones. The
// filter converts a 4-byte operand only when its top byte is 00 or FF; mask
// remembers, for the three bytes before an opcode, which of them were opcodes
// whose operand overlaps, as the packing side did.
type x86Filter struct {
	r   io.Reader
	err error
	// buf[done:] is still to be converted, buf[:done] to be read.
	buf  []byte
	done int
	// at is the place of buf in the stream, and next where the conversion is;
	// both prev, the last opcode, and next count in the stream.
	at, next, prev int
	mask           uint
}

// x86FilterStep is how much is converted at once.
const x86FilterStep = 64 << 10

// Read implements io.Reader.
func (f *x86Filter) Read(p []byte) (int, error) {
	for f.done == 0 {
		if f.err != nil {
			return 0, f.err
		}
		f.more()
	}
	n := copy(p, f.buf[:f.done])
	f.buf, f.done, f.at = f.buf[n:], f.done-n, f.at+n
	return n, nil
}

// more reads on. The last four bytes wait for what follows them.
func (f *x86Filter) more() {
	had := len(f.buf)
	f.buf = append(make([]byte, 0, had+x86FilterStep), f.buf...)[:had+x86FilterStep]
	n, err := f.r.Read(f.buf[had:])
	f.buf, f.err = f.buf[:had+n], err
	f.undo()
	f.done = f.next - f.at
	if err != nil {
		f.done = len(f.buf)
	}
}

// undo converts as far as it can.
func (f *x86Filter) undo() {
	sign := func(c byte) bool { return c == 0 || c == 0xff }
	allowed := [8]bool{true, true, true, false, true}
	covered := [8]uint{0, 1, 2, 2, 3, 3, 3, 3}
	for ; f.next+4 < f.at+len(f.buf); f.next++ {
		b := f.buf[f.next-f.at:]
		if b[0]&0xfe != 0xe8 {
			continue
		}
		if dist := f.next - f.prev; dist > 3 {
			f.mask = 0
		} else {
			f.mask = f.mask << (dist - 1) & 7
			if f.mask != 0 && (!allowed[f.mask] || sign(b[4-covered[f.mask]])) {
				f.prev, f.mask = f.next, f.mask<<1|1
				continue
			}
		}
		f.prev = f.next
		if !sign(b[4]) {
			f.mask = f.mask<<1 | 1
			continue
		}
		binary.LittleEndian.PutUint32(b[1:], x86FilterTarget(binary.LittleEndian.Uint32(b[1:]), uint32(f.next+5), f.mask, covered[f.mask]*8))
		f.next += 4
	}
}

// x86FilterTarget is the relative target of an absolute one at next. Where an
// opcode lies inside the operand, the packing side may have converted more
// than once; the bound is for damaged data.
func x86FilterTarget(target, next uint32, mask uint, shift uint) uint32 {
	rel := target - next
	for range 8 {
		if mask == 0 {
			break
		}
		if c := byte(rel >> (24 - shift)); c != 0 && c != 0xff {
			break
		}
		rel = (rel ^ (1<<(32-shift) - 1)) - next
	}
	rel &= 0x01ffffff
	return rel | -(rel & 0x01000000)
}
