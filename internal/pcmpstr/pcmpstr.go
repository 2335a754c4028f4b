// Package pcmpstr is the string comparison of SSE4.2: what pcmpestri, pcmpestrm, pcmpistri and
// pcmpistrm compute (SDM Vol. 1, "String and Text Processing Instructions"; Vol. 2, "Imm8 Control
// Byte Operation"). Both engines ask it.
//
// It must not know engines, registers and instructions' encodings.
package pcmpstr

import (
	"encoding/binary"
	"math/bits"
)

// Vector is a vector register, its first byte first.
type Vector [16]byte

// Fields of the control byte.
const (
	words       = 1 << 0
	signed      = 1 << 1
	aggregation = 3 << 2
	equalAny    = 0 << 2
	ranges      = 1 << 2
	equalEach   = 2 << 2
	negative    = 1 << 4
	masked      = 1 << 5
	// last is the most significant index, or a mask of whole elements.
	last = 1 << 6
)

// Flags is the mask of all arithmetic flags. A comparison sets FlagCF, FlagZF, FlagSF and FlagOF by its result,
// and clears the others.
const (
	FlagCF = 1 << 0
	FlagZF = 1 << 6
	FlagSF = 1 << 7
	FlagOF = 1 << 11
	Flags  = 0x8d5
)

// Result is a comparison's.
type Result struct {
	// Bits has one bit for each element of the second operand (IntRes2).
	Bits  uint32
	Flags uint64
	imm   byte
}

// comparison is the two operands and how many elements of each are valid.
type comparison struct {
	imm    byte
	n      int // elements in a vector
	a, b   *Vector
	la, lb int
}

// Elements returns the number of elements in a vector.
func Elements(imm byte) int {
	if imm&words != 0 {
		return 8
	}
	return 16
}

// Explicit is the length that a register gives: its magnitude, up to a whole vector.
func Explicit(v int64, imm byte) int {
	n := int64(Elements(imm))
	if v <= -n || v >= n {
		return int(n)
	}
	return int(max(v, -v))
}

// Implicit is the length of a vector that ends at its first zero.
func Implicit(v *Vector, imm byte) int {
	c := comparison{imm: imm}
	n := Elements(imm)
	for i := range n {
		if c.element(v, i) == 0 {
			return i
		}
	}
	return n
}

// Compare compares a, the first operand, with b, of which la and lb elements are valid.
func Compare(a, b *Vector, la, lb int, imm byte) Result {
	c := comparison{imm: imm, n: Elements(imm), a: a, b: b, la: la, lb: lb}
	r := Result{imm: imm}
	for j := range c.n {
		is := c.one(j)
		if imm&negative != 0 && (imm&masked == 0 || j < lb) {
			is = !is
		}
		if is {
			r.Bits |= 1 << j
		}
	}
	for _, f := range []struct {
		is   bool
		flag uint64
	}{{r.Bits != 0, FlagCF}, {lb < c.n, FlagZF}, {la < c.n, FlagSF}, {r.Bits&1 != 0, FlagOF}} {
		if f.is {
			r.Flags |= f.flag
		}
	}
	return r
}

// one is the bit of an element of the second operand, before it is negated.
func (c *comparison) one(j int) bool {
	switch c.imm & aggregation {
	case equalAny:
		return j < c.lb && c.any(1, func(i int) bool { return c.at(c.a, i) == c.at(c.b, j) })
	case ranges:
		return j < c.lb && c.any(2, func(i int) bool {
			v := c.at(c.b, j)
			return i+1 < c.la && c.at(c.a, i) <= v && v <= c.at(c.a, i+1)
		})
	case equalEach:
		if j >= c.la || j >= c.lb {
			return j >= c.la && j >= c.lb
		}
		return c.at(c.a, j) == c.at(c.b, j)
	}
	for i := 0; i < c.la && i+j < c.n; i++ {
		if i+j >= c.lb || c.at(c.a, i) != c.at(c.b, i+j) {
			return false
		}
	}
	return true
}

// any asks about every step-th valid element of the first operand.
func (c *comparison) any(step int, is func(i int) bool) bool {
	for i := 0; i < c.la; i += step {
		if is(i) {
			return true
		}
	}
	return false
}

// at is an element as a number.
func (c *comparison) at(v *Vector, i int) int32 {
	e := c.element(v, i)
	switch {
	case c.imm&signed == 0:
		return int32(e)
	case c.imm&words != 0:
		return int32(int16(e))
	}
	return int32(int8(e))
}

func (c *comparison) element(v *Vector, i int) uint16 {
	if c.imm&words != 0 {
		return binary.LittleEndian.Uint16(v[2*i:])
	}
	return uint16(v[i])
}

// Index is the result of pcmpestri and pcmpistri.
func (r Result) Index() uint64 {
	switch {
	case r.Bits == 0:
		return uint64(Elements(r.imm))
	case r.imm&last != 0:
		return uint64(bits.Len32(r.Bits) - 1)
	}
	return uint64(bits.TrailingZeros32(r.Bits))
}

// Mask is the result of pcmpestrm and pcmpistrm.
func (r Result) Mask() (v Vector) {
	if r.imm&last == 0 {
		binary.LittleEndian.PutUint32(v[:], r.Bits)
		return v
	}
	size := len(v) / Elements(r.imm)
	for i := range v {
		v[i] = byte(-(r.Bits >> (i / size) & 1))
	}
	return v
}
