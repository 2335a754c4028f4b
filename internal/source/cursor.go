package source

import (
	"bytes"
	"encoding/binary"
)

// cursor reads bytes in order; bad is set once there are none left.
type cursor struct {
	b   []byte
	at  uint64
	bad bool
}

func (c *cursor) skip(n uint64) {
	if n > uint64(len(c.b))-c.at {
		c.bad, n = true, uint64(len(c.b))-c.at
	}
	c.at += n
}

func (c *cursor) take(n uint64) []byte {
	from := c.at
	if c.skip(n); c.bad {
		return make([]byte, min(n, 16))
	}
	return c.b[from:c.at]
}

func (c *cursor) u8() byte    { return c.take(1)[0] }
func (c *cursor) u16() uint16 { return binary.LittleEndian.Uint16(c.take(2)) }
func (c *cursor) u32() uint32 { return binary.LittleEndian.Uint32(c.take(4)) }
func (c *cursor) u64() uint64 { return binary.LittleEndian.Uint64(c.take(8)) }

func (c *cursor) offset(wide bool) uint64 {
	if wide {
		return c.u64()
	}
	return uint64(c.u32())
}

// leb is a number in LEB128: its bits, how many they are, and its last byte.
func (c *cursor) leb() (v uint64, bits uint, last byte) {
	for {
		if c.at >= uint64(len(c.b)) {
			c.bad = true
			return v, bits, 0
		}
		b := c.b[c.at]
		c.at++
		if bits < 64 {
			v |= uint64(b&0x7f) << bits
		}
		bits += 7
		if b < 0x80 {
			return v, bits, b
		}
	}
}

func (c *cursor) uleb() uint64 {
	v, _, _ := c.leb()
	return v
}

func (c *cursor) sleb() int64 {
	v, bits, last := c.leb()
	if last&0x40 != 0 && bits < 64 {
		v |= ^uint64(0) << bits
	}
	return int64(v)
}

// text is a string up to its NUL.
func (c *cursor) text() []byte {
	n := bytes.IndexByte(c.b[c.at:], 0)
	if n < 0 {
		c.bad = true
		return nil
	}
	s := c.b[c.at : c.at+uint64(n)]
	c.at += uint64(n) + 1
	return s
}
