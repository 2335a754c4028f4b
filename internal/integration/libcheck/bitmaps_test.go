package libcheck

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
)

// bitset is the plain model of a bitmap: one bool a bit.
type bitset []bool

func (g *Gen) bitset(nbits int) bitset {
	b := make(bitset, nbits)
	density := 1 + g.IntN(8)
	for i := range b {
		b[i] = g.IntN(density) == 0
	}
	return b
}

func (b bitset) bytes() []byte {
	out := make([]byte, (len(b)+63)/64*8)
	for i, set := range b {
		if set {
			out[i/8] |= 1 << (i % 8)
		}
	}
	return out
}

func (b bitset) count() (n int) {
	for _, set := range b {
		if set {
			n++
		}
	}
	return n
}

// next is the first bit from start on that is set as wanted, or len(b).
func (b bitset) next(start int, set bool) int {
	for i := start; i < len(b); i++ {
		if b[i] == set {
			return i
		}
	}
	return len(b)
}

func zip(a, b bitset, op func(x, y bool) bool) bitset {
	out := make(bitset, len(a))
	for i := range a {
		out[i] = op(a[i], b[i])
	}
	return out
}

func andOp(x, y bool) bool    { return x && y }
func orOp(x, y bool) bool     { return x || y }
func xorOp(x, y bool) bool    { return x != y }
func andnotOp(x, y bool) bool { return x && !y }

// bitFuncs are lib/bitmap.c and lib/find_bit.c.
var bitFuncs = []Func{
	combine("__bitmap_and", andOp, true), combine("__bitmap_andnot", andnotOp, true),
	combine("__bitmap_or", orOp, false), combine("__bitmap_xor", xorOp, false),
	relate("__bitmap_equal", func(a, b bitset) bool { return zip(a, b, xorOp).count() == 0 }),
	relate("__bitmap_intersects", func(a, b bitset) bool { return zip(a, b, andOp).count() > 0 }),
	relate("__bitmap_subset", func(a, b bitset) bool { return zip(a, b, andnotOp).count() == 0 }),
	{"__bitmap_or_equal", func(g *Gen) Call {
		size := 65 + g.IntN(200)
		a, b := g.bitset(size), g.bitset(size)
		c := zip(a, b, orOp)
		if g.IntN(2) == 0 {
			i := g.IntN(size)
			c[i] = !c[i]
		}
		return call(a.bytes(), b.bytes(), c.bytes(), size).gives(Bool(zip(zip(a, b, orOp), c, xorOp).count() == 0))
	}},
	{"__bitmap_weight", func(g *Gen) Call {
		b := g.bitset(65 + g.IntN(200))
		return call(b.bytes(), len(b)).gives(I32(b.count()))
	}},
	{"__bitmap_complement", func(g *Gen) Call {
		b := g.bitset(64 * (1 + g.IntN(4)))
		return call(zeroed(zip(b, b, func(x, _ bool) bool { return !x }).bytes()), b.bytes(), len(b))
	}},
	shift("__bitmap_shift_left", func(i, by int) int { return i + by }),
	shift("__bitmap_shift_right", func(i, by int) int { return i - by }),
	fill("__bitmap_set", true), fill("__bitmap_clear", false),
	{"__bitmap_replace", func(g *Gen) Call {
		size := 64 * (1 + g.IntN(3))
		a, b, mask := g.bitset(size), g.bitset(size), g.bitset(size)
		want := zip(zip(a, mask, andnotOp), zip(b, mask, andOp), orOp)
		return call(zeroed(want.bytes()), a.bytes(), b.bytes(), mask.bytes(), size)
	}},
	{"bitmap_find_next_zero_area_off", func(g *Gen) Call {
		b := g.bitset(100 + g.IntN(200))
		start, run, mask := g.IntN(100), 1+g.IntN(8), []int{0, 1, 3, 7}[g.IntN(4)]
		offset := g.IntN(4)
		return call(b.bytes(), len(b), start, run, mask, offset).gives(Want{Bits: 64, Value: n(b.zeroArea(start, run, mask, offset))})
	}},
	find("_find_first_bit", true), find("_find_first_zero_bit", false),
	findNext("_find_next_bit", true), findNext("_find_next_zero_bit", false),
	{"_find_last_bit", func(g *Gen) Call {
		b := g.bitset(1 + g.IntN(200))
		want := len(b)
		for i, set := range b {
			if set {
				want = i
			}
		}
		return call(b.bytes(), len(b)).gives(U64(want))
	}},
	{"_find_first_and_bit", func(g *Gen) Call {
		size := 1 + g.IntN(200)
		a, b := g.bitset(size), g.bitset(size)
		return call(a.bytes(), b.bytes(), size).gives(U64(zip(a, b, andOp).next(0, true)))
	}},
	{"_find_next_and_bit", func(g *Gen) Call {
		size := 1 + g.IntN(200)
		a, b, start := g.bitset(size), g.bitset(size), g.IntN(size)
		return call(a.bytes(), b.bytes(), size, start).gives(U64(zip(a, b, andOp).next(start, true)))
	}},
	{"find_next_clump8", func(g *Gen) Call {
		b := g.bitset(8 * (1 + g.IntN(30)))
		start := g.IntN(len(b))
		buf := Buf{In: padded(nil, 8)}
		i := b.next(start, true)
		if i < len(b) {
			i &^= 7
			buf.Out = []byte{b.bytes()[i/8], 0, 0, 0, 0, 0, 0, 0}
		}
		return call(buf, b.bytes(), len(b), start).gives(U64(i))
	}},
	{"bitmap_from_arr32", func(g *Gen) Call {
		b := g.bitset(1 + g.IntN(300))
		return call(zeroed(b.bytes()), b.bytes(), len(b))
	}},
	{"bitmap_to_arr32", func(g *Gen) Call {
		b := g.bitset(32 * (1 + g.IntN(8)))
		return call(zeroed(b.bytes()[:len(b)/8]), b.bytes(), len(b))
	}},
	{"bitmap_parselist", func(g *Gen) Call {
		size := 40 + g.IntN(100)
		b := make(bitset, size)
		var parts []string
		for range 1 + g.IntN(4) {
			lo := g.IntN(size)
			hi := lo + g.IntN(size-lo)
			for i := lo; i <= hi; i++ {
				b[i] = true
			}
			parts = append(parts, fmt.Sprintf("%d-%d", lo, hi))
		}
		return call(strings.Join(parts, ","), zeroed(b.bytes()), size).gives(I32(0))
	}},
	{"memweight", func(g *Gen) Call {
		b, want := g.Bytes(1+g.IntN(60)), 0
		for _, c := range b {
			want += bits.OnesCount8(c)
		}
		return call(b, len(b)).gives(U64(want))
	}},
}

func (b bitset) zeroArea(start, run, mask, offset int) int {
	for {
		i := b.next(start, false)
		i = (i+offset+mask)&^mask - offset
		end := i + run
		if end > len(b) {
			return end
		}
		if used := b.next(i, true); used < end {
			start = used + 1
			continue
		}
		return i
	}
}

func combine(name string, op func(x, y bool) bool, answers bool) Func {
	return Func{name, func(g *Gen) Call {
		size := 64 * (1 + g.IntN(4))
		a, b := g.bitset(size), g.bitset(size)
		out := zip(a, b, op)
		var want Want
		if answers {
			want = Bool(out.count() > 0)
		}
		return call(zeroed(out.bytes()), a.bytes(), b.bytes(), size).gives(want)
	}}
}

func relate(name string, test func(a, b bitset) bool) Func {
	return Func{name, func(g *Gen) Call {
		size := 1 + g.IntN(200)
		a := g.bitset(size)
		b := g.bitset(size)
		if g.IntN(2) == 0 {
			b = zip(a, b, orOp)
		}
		if g.IntN(3) == 0 {
			b = a
		}
		return call(a.bytes(), b.bytes(), size).gives(Bool(test(a, b)))
	}}
}

func shift(name string, move func(i, by int) int) Func {
	return Func{name, func(g *Gen) Call {
		b := g.bitset(64 * (1 + g.IntN(4)))
		by := g.IntN(len(b))
		out := make(bitset, len(b))
		for i, set := range b {
			if to := move(i, by); to >= 0 && to < len(b) {
				out[to] = set
			}
		}
		return call(zeroed(out.bytes()), b.bytes(), by, len(b))
	}}
}

func fill(name string, set bool) Func {
	return Func{name, func(g *Gen) Call {
		b := g.bitset(200)
		before := b.bytes()
		start := g.IntN(200)
		count := g.IntN(200 - start)
		for i := start; i < start+count; i++ {
			b[i] = set
		}
		return call(changed(before, b.bytes()), start, count)
	}}
}

func find(name string, set bool) Func {
	return Func{name, func(g *Gen) Call {
		b := g.bitset(1 + g.IntN(200))
		return call(b.bytes(), len(b)).gives(U64(b.next(0, set)))
	}}
}

func findNext(name string, set bool) Func {
	return Func{name, func(g *Gen) Call {
		b := g.bitset(1 + g.IntN(200))
		start := g.IntN(len(b))
		return call(b.bytes(), len(b), start).gives(U64(b.next(start, set)))
	}}
}

var le = binary.LittleEndian
