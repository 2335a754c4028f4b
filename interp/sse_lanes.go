package interp

import "math/bits"

// xmm is a vector register, low half first.
type xmm [2]uint64

// lane reads the i-th part of some bits; setLane changes it.
func (v *xmm) lane(i, width int) uint64 {
	at := i * width
	return v[at>>6] >> (at & 63) & (1<<width - 1)
}

func (v *xmm) setLane(i, width int, x uint64) {
	at := i * width
	mask := (uint64(1)<<width - 1) << (at & 63)
	v[at>>6] = v[at>>6]&^mask | x<<(at&63)&mask
}

func signed(x uint64, width int) int64 { return int64(x<<(64-width)) >> (64 - width) }

// lanes applies fn to each pair of parts, unsigned.
func lanes(width int, fn func(x, y uint64) uint64) func(a, b xmm) xmm {
	return func(a, b xmm) (v xmm) {
		for i := range 128 / width {
			v.setLane(i, width, fn(a.lane(i, width), b.lane(i, width)))
		}
		return v
	}
}

// slanes is lanes for signed parts.
func slanes(width int, fn func(x, y int64) int64) func(a, b xmm) xmm {
	return lanes(width, func(x, y uint64) uint64 { return uint64(fn(signed(x, width), signed(y, width))) })
}

// words applies fn to the two halves.
func words(fn func(x, y uint64) uint64) func(a, b xmm) xmm {
	return func(a, b xmm) xmm { return xmm{fn(a[0], b[0]), fn(a[1], b[1])} }
}

func add(x, y uint64) uint64 { return x + y }
func sub(x, y uint64) uint64 { return x - y }

// saturate keeps a number in the range of a signed or unsigned part.
func saturate(v int64, width int, sign bool) uint64 {
	lo, hi := int64(0), int64(1)<<width-1
	if sign {
		lo, hi = -1<<(width-1), 1<<(width-1)-1
	}
	return uint64(min(max(v, lo), hi))
}

func saturating(width int, sign bool, fn func(x, y int64) int64) func(a, b xmm) xmm {
	return lanes(width, func(x, y uint64) uint64 {
		if sign {
			return saturate(fn(signed(x, width), signed(y, width)), width, true)
		}
		return saturate(fn(int64(x), int64(y)), width, false)
	})
}

func plus(x, y int64) int64  { return x + y }
func minus(x, y int64) int64 { return x - y }

func all1(is bool) uint64 {
	if is {
		return ^uint64(0)
	}
	return 0
}

func equal(x, y uint64) uint64 { return all1(x == y) }

func greater(width int) func(a, b xmm) xmm {
	return slanes(width, func(x, y int64) int64 { return int64(all1(x > y)) })
}

// unpack takes parts of both in turn, from the low or the high halves.
func unpack(width int, high bool) func(a, b xmm) xmm {
	n := 64 / width
	from := 0
	if high {
		from = n
	}
	return func(a, b xmm) (v xmm) {
		for i := range n {
			if width == 64 {
				return xmm{a[from], b[from]}
			}
			v.setLane(2*i, width, a.lane(from+i, width))
			v.setLane(2*i+1, width, b.lane(from+i, width))
		}
		return v
	}
}

// pack makes parts half as wide, saturated.
func pack(width int, sign bool) func(a, b xmm) xmm {
	n := 128 / width
	return func(a, b xmm) (v xmm) {
		for i := range n {
			v.setLane(i, width/2, saturate(signed(a.lane(i, width), width), width/2, sign))
			v.setLane(n+i, width/2, saturate(signed(b.lane(i, width), width), width/2, sign))
		}
		return v
	}
}

// shiftLanes shifts each part by the second operand's low half.
func shiftLanes(width int, fn func(x uint64, n uint64) uint64) func(a, b xmm) xmm {
	return func(a, b xmm) (v xmm) {
		if width == 64 {
			return xmm{fn(a[0], b[0]), fn(a[1], b[0])}
		}
		for i := range 128 / width {
			v.setLane(i, width, fn(a.lane(i, width), b[0]))
		}
		return v
	}
}

func left(x, n uint64) uint64  { return x << n }
func right(x, n uint64) uint64 { return x >> n }

func arithmeticRight(width int) func(x, n uint64) uint64 {
	return func(x, n uint64) uint64 { return uint64(signed(x, width) >> min(n, 63)) }
}

func shiftBytesRight(a, b xmm) xmm {
	n := min(b[0], 16) * 8
	if n >= 64 {
		return xmm{a[1] >> (n - 64), 0}
	}
	return xmm{a[0]>>n | a[1]<<(64-n), a[1] >> n}
}

func shiftBytesLeft(a, b xmm) xmm {
	n := min(b[0], 16) * 8
	if n >= 64 {
		return xmm{0, a[0] << (n - 64)}
	}
	return xmm{a[0] << n, a[1]<<n | a[0]>>(64-n)}
}

func mulHigh(x, y uint64) uint64 { return x * y >> 16 }

func multiplyAdd(a, b xmm) (v xmm) {
	for i := range 4 {
		p := func(j int) int64 { return signed(a.lane(j, 16), 16) * signed(b.lane(j, 16), 16) }
		v.setLane(i, 32, uint64(p(2*i)+p(2*i+1)))
	}
	return v
}

func sumDifferences(a, b xmm) (v xmm) {
	for i := range 16 {
		d := int64(a.lane(i, 8)) - int64(b.lane(i, 8))
		v[i/8] += uint64(max(d, -d))
	}
	return v
}

func average(x, y uint64) uint64 { return (x + y + 1) >> 1 }

func shuffleBytes(a, b xmm) (v xmm) {
	for i := range 16 {
		if n := b.lane(i, 8); n < 0x80 {
			v.setLane(i, 8, a.lane(int(n&15), 8))
		}
	}
	return v
}

// widen makes the low parts of the second operand wider.
func widen(from, to int, sign bool) func(a, b xmm) xmm {
	return func(_, b xmm) (v xmm) {
		for i := range 128 / to {
			x := b.lane(i, from)
			if sign {
				x = uint64(signed(x, from))
			}
			if to == 64 {
				v[i] = x
			} else {
				v.setLane(i, to, x)
			}
		}
		return v
	}
}

func absolute(width int) func(a, b xmm) xmm {
	return func(_, b xmm) xmm {
		return slanes(width, func(_, y int64) int64 { return max(y, -y) })(b, b)
	}
}

func mul32(a, b xmm) xmm {
	return xmm{uint64(uint32(a[0])) * uint64(uint32(b[0])), uint64(uint32(a[1])) * uint64(uint32(b[1]))}
}

func mulSigned32(a, b xmm) xmm {
	return xmm{uint64(int64(int32(a[0])) * int64(int32(b[0]))), uint64(int64(int32(a[1])) * int64(int32(b[1])))}
}

// signs has the top bit of each part.
func (v *xmm) signs(width int) (n uint64) {
	for i := range 128 / width {
		n |= v[i*width>>6] >> ((i*width + width - 1) & 63) & 1 << i
	}
	return n
}

func andNot(x, y uint64) uint64 { return ^x & y }
func and(x, y uint64) uint64    { return x & y }
func or(x, y uint64) uint64     { return x | y }
func xor(x, y uint64) uint64    { return x ^ y }

// packed are the instructions of two vectors that have 66 and the opcode after 0F.
var packed = map[byte]func(a, b xmm) xmm{
	0x60: unpack(8, false), 0x61: unpack(16, false), 0x62: unpack(32, false), 0x6c: unpack(64, false),
	0x68: unpack(8, true), 0x69: unpack(16, true), 0x6a: unpack(32, true), 0x6d: unpack(64, true),
	0x63: pack(16, true), 0x67: pack(16, false), 0x6b: pack(32, true),
	0x64: greater(8), 0x65: greater(16), 0x66: greater(32),
	0x74: lanes(8, equal), 0x75: lanes(16, equal), 0x76: lanes(32, equal),
	0xd4: words(add), 0xfc: lanes(8, add), 0xfd: lanes(16, add), 0xfe: lanes(32, add),
	0xfb: words(sub), 0xf8: lanes(8, sub), 0xf9: lanes(16, sub), 0xfa: lanes(32, sub),
	0xdc: saturating(8, false, plus), 0xdd: saturating(16, false, plus), 0xec: saturating(8, true, plus), 0xed: saturating(16, true, plus),
	0xd8: saturating(8, false, minus), 0xd9: saturating(16, false, minus), 0xe8: saturating(8, true, minus), 0xe9: saturating(16, true, minus),
	0xd5: lanes(16, func(x, y uint64) uint64 { return x * y }), 0xe4: lanes(16, mulHigh),
	0xe5: slanes(16, func(x, y int64) int64 { return x * y >> 16 }),
	0xf4: mul32, 0xf5: multiplyAdd, 0xf6: sumDifferences,
	0xda: lanes(8, func(x, y uint64) uint64 { return min(x, y) }), 0xde: lanes(8, func(x, y uint64) uint64 { return max(x, y) }),
	0xea: slanes(16, func(x, y int64) int64 { return min(x, y) }), 0xee: slanes(16, func(x, y int64) int64 { return max(x, y) }),
	0xe0: lanes(8, average), 0xe3: lanes(16, average),
	0xdb: words(and), 0xdf: words(andNot), 0xeb: words(or), 0xef: words(xor),
	0xd1: shiftLanes(16, right), 0xd2: shiftLanes(32, right), 0xd3: shiftLanes(64, right),
	0xe1: shiftLanes(16, arithmeticRight(16)), 0xe2: shiftLanes(32, arithmeticRight(32)),
	0xf1: shiftLanes(16, left), 0xf2: shiftLanes(32, left), 0xf3: shiftLanes(64, left),
	0x14: unpack(64, false), 0x15: unpack(64, true),
	0x54: words(and), 0x55: words(andNot), 0x56: words(or), 0x57: words(xor),
}

// crc32c is the checksum of the instruction, one byte further.
func crc32c(crc uint32, b byte) uint32 {
	const polynomial = 0x82f63b78
	crc ^= uint32(b)
	for range 8 {
		crc = crc>>1 ^ polynomial&-(crc&1)
	}
	return crc
}

func reverse(v uint64, size uint8) uint64 { return bits.ReverseBytes64(v) >> (64 - 8*size) }
