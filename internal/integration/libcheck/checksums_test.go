package libcheck

import (
	"hash/crc32"
	"math/bits"
)

// reflected is the bitwise definition of a right-shifting CRC.
func reflected(crc, poly uint64, data []byte) uint64 {
	for _, c := range data {
		crc ^= uint64(c)
		for range 8 {
			crc = crc>>1 ^ poly*(crc&1)
		}
	}
	return crc
}

// straight is the bitwise definition of a left-shifting CRC of a width in bits.
func straight(crc, poly uint64, width int, data []byte) uint64 {
	for _, c := range data {
		crc ^= uint64(c) << (width - 8)
		for range 8 {
			top := crc >> (width - 1) & 1
			crc = crc<<1 ^ poly*top
			if width < 64 {
				crc &= 1<<width - 1
			}
		}
	}
	return crc
}

// checksumFuncs are lib/crc* and the checksum of lib/checksum.c and csum-partial.
var checksumFuncs = []Func{
	crcFunc("crc32_le", 32, func(crc uint64, b []byte) uint64 { return uint64(^crc32.Update(^uint32(crc), crc32.IEEETable, b)) }),
	crcFunc("__crc32c_le", 32, func(crc uint64, b []byte) uint64 { return reflected(crc, 0x82f63b78, b) }),
	crcFunc("crc32_be", 32, func(crc uint64, b []byte) uint64 { return straight(crc, 0x04c11db7, 32, b) }),
	crcFunc("crc16", 16, func(crc uint64, b []byte) uint64 { return reflected(crc, 0xa001, b) }),
	crcFunc("crc_ccitt", 16, func(crc uint64, b []byte) uint64 { return reflected(crc, 0x8408, b) }),
	crcFunc("crc_ccitt_false", 16, func(crc uint64, b []byte) uint64 { return straight(crc, 0x1021, 16, b) }),
	crcFunc("crc64_be", 64, func(crc uint64, b []byte) uint64 { return straight(crc, 0x42f0e1eba9ea3693, 64, b) }),
	crcFunc("crc_t10dif_generic", 16, func(crc uint64, b []byte) uint64 { return straight(crc, 0x8bb7, 16, b) }),
	crcFunc("crc64_rocksoft_generic", 64, func(crc uint64, b []byte) uint64 {
		return ^reflected(^crc, 0x9a6c9329ac4bc9b5, b)
	}),
	{"ip_compute_csum", func(g *Gen) Call {
		b := g.Bytes(2 * (1 + g.IntN(60)))
		return call(b, len(b)).gives(U16(^fold16(onesSum(b))))
	}},
}

// crcFunc is f(crc, data, len).
func crcFunc(name string, width int, ref func(crc uint64, b []byte) uint64) Func {
	return Func{name, func(g *Gen) Call {
		crc := g.Uint64()
		if width < 64 {
			crc &= 1<<width - 1
		}
		b := g.Bytes(g.IntN(200))
		off := g.IntN(8) // the table-driven forms treat the misaligned head apart
		return call(crc, within{in(append(make([]byte, off), b...)), off}, len(b)).gives(Want{Bits: width, Value: ref(crc, b)})
	}}
}

func onesSum(b []byte) (sum uint64) {
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint64(le.Uint16(b[i:]))
	}
	return sum
}

func fold16(sum uint64) uint16 {
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// hashFuncs are lib/siphash.c and lib/xxhash.c.
var hashFuncs = []Func{
	sipWords("siphash_1u64", 1), sipWords("siphash_2u64", 2), sipWords("siphash_3u64", 3), sipWords("siphash_4u64", 4),
	{"siphash_1u32", func(g *Gen) Call {
		key, a := g.Bytes(16), g.Uint32()
		return call(a, key).gives(U64(siphash(key, le.AppendUint32(nil, a), 2, 4)))
	}},
	{"siphash_3u32", func(g *Gen) Call {
		key, m := g.Bytes(16), []byte(nil)
		v := [3]uint32{g.Uint32(), g.Uint32(), g.Uint32()}
		for _, w := range v {
			m = le.AppendUint32(m, w)
		}
		return call(v[0], v[1], v[2], key).gives(U64(siphash(key, m, 2, 4)))
	}},
	{"__siphash_unaligned", func(g *Gen) Call {
		key, b := g.Bytes(16), g.Bytes(g.IntN(60))
		return call(b, len(b), key).gives(U64(siphash(key, b, 2, 4)))
	}},
	{"__hsiphash_unaligned", func(g *Gen) Call {
		key, b := g.Bytes(16), g.Bytes(g.IntN(60))
		return call(b, len(b), key).gives(U32(uint32(siphash(key, b, 1, 3))))
	}},
	hsipWords("hsiphash_1u32", 1), hsipWords("hsiphash_2u32", 2), hsipWords("hsiphash_3u32", 3), hsipWords("hsiphash_4u32", 4),
	{"xxh64", func(g *Gen) Call {
		b, seed := g.Bytes(g.IntN(120)), g.Uint64()
		return call(b, len(b), seed).gives(U64(xxh64(b, seed)))
	}},
	{"xxh32", func(g *Gen) Call {
		b, seed := g.Bytes(g.IntN(80)), g.Uint32()
		return call(b, len(b), seed).gives(U32(xxh32(b, seed)))
	}},
}

// siphash is SipHash-c-d (Aumasson and Bernstein, 2012). On 64-bit machines
// the kernel's hsiphash is SipHash-1-3 cut to 32 bits.
func siphash(key, m []byte, c, d int) uint64 {
	k0, k1 := le.Uint64(key), le.Uint64(key[8:])
	v := [4]uint64{k0 ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d, k0 ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573}
	round := func() {
		v[0] += v[1]
		v[1] = bits.RotateLeft64(v[1], 13) ^ v[0]
		v[0] = bits.RotateLeft64(v[0], 32)
		v[2] += v[3]
		v[3] = bits.RotateLeft64(v[3], 16) ^ v[2]
		v[0] += v[3]
		v[3] = bits.RotateLeft64(v[3], 21) ^ v[0]
		v[2] += v[1]
		v[1] = bits.RotateLeft64(v[1], 17) ^ v[2]
		v[2] = bits.RotateLeft64(v[2], 32)
	}
	last := make([]byte, (len(m)/8+1)*8)
	copy(last, m)
	last[len(last)-1] = byte(len(m))
	for i := 0; i < len(last); i += 8 {
		w := le.Uint64(last[i:])
		v[3] ^= w
		for range c {
			round()
		}
		v[0] ^= w
	}
	v[2] ^= 0xff
	for range d {
		round()
	}
	return v[0] ^ v[1] ^ v[2] ^ v[3]
}

func sipWords(name string, count int) Func {
	return Func{name, func(g *Gen) Call {
		key, v, args := g.Bytes(16), make([]uint64, count), []any(nil)
		for i := range v {
			v[i] = g.Uint64()
			args = append(args, v[i])
		}
		return call(append(args, key)...).gives(U64(siphash(key, words(v), 2, 4)))
	}}
}

func hsipWords(name string, count int) Func {
	return Func{name, func(g *Gen) Call {
		key, m, args := g.Bytes(16), []byte(nil), []any(nil)
		for range count {
			v := g.Uint32()
			m = le.AppendUint32(m, v)
			args = append(args, v)
		}
		return call(append(args, key)...).gives(U32(uint32(siphash(key, m, 1, 3))))
	}}
}

// xxh64 and xxh32 follow the published description of xxHash.
func xxh64(b []byte, seed uint64) uint64 {
	const p1, p2, p3, p4, p5 = 11400714785074694791, 14029467366897019727, 1609587929392839161, 9650029242287828579, 2870177450012600261
	round := func(acc, w uint64) uint64 { return bits.RotateLeft64(acc+w*p2, 31) * p1 }
	h, total := seed+p5, uint64(len(b))
	if len(b) >= 32 {
		start := seed + p1
		v := [4]uint64{start + p2, seed + p2, seed, seed - p1}
		for ; len(b) >= 32; b = b[32:] {
			for i := range v {
				v[i] = round(v[i], le.Uint64(b[8*i:]))
			}
		}
		h = bits.RotateLeft64(v[0], 1) + bits.RotateLeft64(v[1], 7) + bits.RotateLeft64(v[2], 12) + bits.RotateLeft64(v[3], 18)
		for _, w := range v {
			h = (h^round(0, w))*p1 + p4
		}
	}
	h += total
	for ; len(b) >= 8; b = b[8:] {
		h = bits.RotateLeft64(h^round(0, le.Uint64(b)), 27)*p1 + p4
	}
	if len(b) >= 4 {
		h = bits.RotateLeft64(h^uint64(le.Uint32(b))*p1, 23)*p2 + p3
		b = b[4:]
	}
	for _, c := range b {
		h = bits.RotateLeft64(h^uint64(c)*p5, 11) * p1
	}
	h = (h ^ h>>33) * p2
	h = (h ^ h>>29) * p3
	return h ^ h>>32
}

func xxh32(b []byte, seed uint32) uint32 {
	const p1, p2, p3, p4, p5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
	h, total := seed+p5, uint32(len(b))
	if len(b) >= 16 {
		start := seed + p1
		v := [4]uint32{start + p2, seed + p2, seed, seed - p1}
		for ; len(b) >= 16; b = b[16:] {
			for i := range v {
				v[i] = bits.RotateLeft32(v[i]+le.Uint32(b[4*i:])*p2, 13) * p1
			}
		}
		h = bits.RotateLeft32(v[0], 1) + bits.RotateLeft32(v[1], 7) + bits.RotateLeft32(v[2], 12) + bits.RotateLeft32(v[3], 18)
	}
	h += total
	for ; len(b) >= 4; b = b[4:] {
		h = bits.RotateLeft32(h+le.Uint32(b)*p3, 17) * p4
	}
	for _, c := range b {
		h = bits.RotateLeft32(h+uint32(c)*p5, 11) * p1
	}
	h = (h ^ h>>15) * p2
	h = (h ^ h>>13) * p3
	return h ^ h>>16
}
