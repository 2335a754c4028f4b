package kimage

import (
	"bytes"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"

	"github.com/ulikunitz/xz/lzma"
)

// The kernel's build packs with xz's x86 filter in front of LZMA2, which Go's
// xz package refuses. So the container is read here (The .xz File Format),
// and only the LZMA2 data goes through that package.

const (
	xzHeaderSize = 12

	xzFilterX86   = 0x04
	xzFilterLzma2 = 0x21
)

var (
	errXzHeader = errors.New("a block header is damaged")
	errXzCheck  = errors.New("the checksum differs")
)

// unpackXz unpacks the first stream of b.
func unpackXz(b []byte, hint int, p *progress) ([]byte, error) {
	if len(b) < xzHeaderSize {
		return nil, io.ErrUnexpectedEOF
	}
	check := b[7] & 15
	r := bytes.NewReader(b[xzHeaderSize:])
	out := make([]byte, 0, max(hint+1, 64<<10))
	for {
		size, err := r.ReadByte()
		if err != nil {
			return nil, io.ErrUnexpectedEOF
		}
		if size == 0 { // the index: no more blocks
			return out, nil
		}
		if out, err = unpackXzBlock(r, size, check, out, hint, p); err != nil {
			return nil, err
		}
	}
}

// xzBlock is what a block header says.
type xzBlock struct {
	x86     bool
	dictCap int
}

func unpackXzBlock(r *bytes.Reader, size, check byte, out []byte, hint int, p *progress) ([]byte, error) {
	head := make([]byte, int(size)*4+3)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil, io.ErrUnexpectedEOF
	}
	body, sum := head[:len(head)-4], le.Uint32(head[len(head)-4:])
	if crc32.Update(crc32.ChecksumIEEE([]byte{size}), crc32.IEEETable, body) != sum {
		return nil, errXzHeader
	}
	block, err := parseXzBlock(body)
	if err != nil {
		return nil, err
	}
	// A match reaches back at most over what has been unpacked.
	if hint > 0 {
		block.dictCap = min(block.dictCap, hint)
	}
	before := r.Len()
	lz, err := lzma.Reader2Config{DictCap: max(block.dictCap, lzma.MinDictCap)}.NewReader2(r)
	if err != nil {
		return nil, err
	}
	start := len(out)
	if out, err = appendAll(out, lz, p); err != nil {
		return nil, err
	}
	if block.x86 {
		undoX86Filter(out[start:])
	}
	_, err = r.Seek(int64(-(before-r.Len())&3), io.SeekCurrent)
	if err != nil {
		return nil, err
	}
	return out, xzCheck(r, check, out[start:])
}

func parseXzBlock(b []byte) (xzBlock, error) {
	var block xzBlock
	flags := b[0]
	b = b[1:]
	for _, bit := range []byte{0x40, 0x80} { // the two sizes are not needed
		if flags&bit != 0 {
			if _, ok := xzNumber(&b); !ok {
				return block, errXzHeader
			}
		}
	}
	for range int(flags&3) + 1 {
		id, ok1 := xzNumber(&b)
		n, ok2 := xzNumber(&b)
		if !ok1 || !ok2 || n > uint64(len(b)) {
			return block, errXzHeader
		}
		props := b[:n]
		b = b[n:]
		switch {
		case id == xzFilterX86 && n == 0 && block.dictCap == 0:
			block.x86 = true
		case id == xzFilterLzma2 && n == 1 && block.dictCap == 0:
			size, err := lzma.DecodeDictCap(props[0])
			if err != nil {
				return block, errXzHeader
			}
			block.dictCap = int(min(size, maxImage))
		default:
			return block, fmt.Errorf("filter %#x is not supported", id)
		}
	}
	if block.dictCap == 0 {
		return block, errXzHeader
	}
	return block, nil
}

// xzNumber reads a number of seven bits a byte, low bits first.
func xzNumber(b *[]byte) (uint64, bool) {
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

// xzCheck reads a block's checksum and compares it where it is a CRC.
func xzCheck(r io.Reader, check byte, data []byte) error {
	sizes := [16]int{0, 4, 4, 4, 8, 8, 8, 16, 16, 16, 32, 32, 32, 64, 64, 64}
	sum := make([]byte, sizes[check])
	if _, err := io.ReadFull(r, sum); err != nil {
		return io.ErrUnexpectedEOF
	}
	var h hash.Hash
	switch check {
	case 1:
		h = crc32.NewIEEE()
	case 4:
		h = crc64.New(crc64.MakeTable(crc64.ECMA))
	default:
		return nil
	}
	h.Write(data)
	got := h.Sum(nil) // big-endian; the file's is little-endian
	for i := range got {
		if got[i] != sum[len(sum)-1-i] {
			return errXzCheck
		}
	}
	return nil
}

// undoX86Filter turns the absolute targets of E8 and E9 back into relative
// ones. The filter converts a 4-byte operand only when its top byte is 00 or
// FF; mask remembers, for the three bytes before an opcode, which of them were
// opcodes whose operand overlaps, as the packing side did.
func undoX86Filter(b []byte) {
	sign := func(c byte) bool { return c == 0 || c == 0xff }
	allowed := [8]bool{true, true, true, false, true}
	covered := [8]uint{0, 1, 2, 2, 3, 3, 3, 3}
	mask, prev := uint(0), -1
	for i := 0; i+4 < len(b); i++ {
		if b[i]&0xfe != 0xe8 {
			continue
		}
		if dist := i - prev; dist > 3 {
			mask = 0
		} else {
			mask = mask << (dist - 1) & 7
			if mask != 0 && (!allowed[mask] || sign(b[i+4-int(covered[mask])])) {
				prev, mask = i, mask<<1|1
				continue
			}
		}
		prev = i
		if !sign(b[i+4]) {
			mask = mask<<1 | 1
			continue
		}
		le.PutUint32(b[i+1:], x86FilterTarget(le.Uint32(b[i+1:]), uint32(i+5), mask, covered[mask]*8))
		i += 4
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
