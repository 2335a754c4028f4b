package interp

// packed38 are the instructions of two vectors that have 66 and the opcode after 0F 38.
var packed38 = map[byte]func(a, b xmm) xmm{
	0x00: shuffleBytes,
	0x01: neighbours(16, false, plus), 0x02: neighbours(32, false, plus), 0x03: neighbours(16, true, plus),
	0x05: neighbours(16, false, minus), 0x06: neighbours(32, false, minus), 0x07: neighbours(16, true, minus),
	0x04: multiplyAddBytes,
	0x08: slanes(8, withSign), 0x09: slanes(16, withSign), 0x0a: slanes(32, withSign),
	0x0b: slanes(16, func(x, y int64) int64 { return (x*y>>14 + 1) >> 1 }),
	0x1c: absolute(8), 0x1d: absolute(16), 0x1e: absolute(32),
	0x20: widen(8, 16, true), 0x21: widen(8, 32, true), 0x22: widen(8, 64, true),
	0x23: widen(16, 32, true), 0x24: widen(16, 64, true), 0x25: widen(32, 64, true),
	0x30: widen(8, 16, false), 0x31: widen(8, 32, false), 0x32: widen(8, 64, false),
	0x33: widen(16, 32, false), 0x34: widen(16, 64, false), 0x35: widen(32, 64, false),
	0x28: mulSigned32, 0x29: words(equal), 0x2b: pack(32, false),
	0x2a: func(_, b xmm) xmm { return b },
	0x37: words(func(x, y uint64) uint64 { return all1(int64(x) > int64(y)) }),
	0x38: slanes(8, func(x, y int64) int64 { return min(x, y) }), 0x39: slanes(32, func(x, y int64) int64 { return min(x, y) }),
	0x3a: lanes(16, func(x, y uint64) uint64 { return min(x, y) }), 0x3b: lanes(32, func(x, y uint64) uint64 { return min(x, y) }),
	0x3c: slanes(8, func(x, y int64) int64 { return max(x, y) }), 0x3d: slanes(32, func(x, y int64) int64 { return max(x, y) }),
	0x3e: lanes(16, func(x, y uint64) uint64 { return max(x, y) }), 0x3f: lanes(32, func(x, y uint64) uint64 { return max(x, y) }),
	0x40: lanes(32, func(x, y uint64) uint64 { return x * y }),
	0x41: smallestWord,
}

// neighbours combines each pair of parts of a, then each pair of b.
func neighbours(width int, saturated bool, fn func(x, y int64) int64) func(a, b xmm) xmm {
	n := 64 / width
	return func(a, b xmm) (v xmm) {
		for i := range 2 * n {
			from := &a
			if i >= n {
				from = &b
			}
			at := i % n * 2
			x := fn(signed(from.lane(at, width), width), signed(from.lane(at+1, width), width))
			if saturated {
				x = int64(saturate(x, width, true))
			}
			v.setLane(i, width, uint64(x))
		}
		return v
	}
}

// withSign gives x the sign of y, and is 0 where y is.
func withSign(x, y int64) int64 {
	switch {
	case y < 0:
		return -x
	case y == 0:
		return 0
	}
	return x
}

// multiplyAddBytes is pmaddubsw: bytes of a are unsigned, bytes of b signed.
func multiplyAddBytes(a, b xmm) (v xmm) {
	for i := range 8 {
		p := func(j int) int64 { return int64(a.lane(j, 8)) * signed(b.lane(j, 8), 8) }
		v.setLane(i, 16, saturate(p(2*i)+p(2*i+1), 16, true))
	}
	return v
}

// smallestWord is phminposuw: the smallest word, and its index.
func smallestWord(_, b xmm) xmm {
	at := 0
	for i := range 8 {
		if b.lane(i, 16) < b.lane(at, 16) {
			at = i
		}
	}
	return xmm{b.lane(at, 16) | uint64(at)<<16, 0}
}
