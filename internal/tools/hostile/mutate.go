//go:build linux

package main

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

// odd are numbers at which programs go wrong.
var odd = []uint64{
	0, 1, 2, 7, 8, 0x7f, 0x80, 0xff, 0x100, 0xfff, 0x1000, 0x7fff, 0x8000, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff, 1 << 32,
	1 << 47, 1<<47 - 1, 0x7fffffffffffffff, 1 << 63, 0xffff800000000000, 0xffffffff80000000, 0xffffffff81000000, 0xffffffffc0000000,
	0xfffffffffffff000, 0xffffffffffffffff, 0xfffffffffffffffe,
}

// mutate damages a copy: numbers and bits are changed, pieces moved, repeated,
// taken out, the end cut off. Half of the damage is in the first bytes, where
// headers are.
func mutate(rng *rand.Rand, b []byte) []byte {
	b = slices.Clone(b)
	for range 1 + rng.IntN(8) {
		if len(b) == 0 {
			return b
		}
		b = damage(rng, b)
	}
	return b
}

func damage(rng *rand.Rand, b []byte) []byte {
	at := rng.IntN(len(b))
	if rng.IntN(2) == 0 {
		at = rng.IntN(min(len(b), 1024))
	}
	n := min(1+rng.IntN(64), len(b)-at)
	switch rng.IntN(9) {
	case 0:
		b[at] ^= 1 << rng.IntN(8)
	case 1:
		b[at] = byte(rng.Uint32())
	case 2, 3:
		return number(rng, b, at)
	case 4:
		for i := range n {
			b[at+i] = byte(rng.Uint32())
		}
	case 5:
		copy(b[at:at+n], b[rng.IntN(len(b)):])
	case 6:
		return slices.Delete(b, at, at+n)
	case 7:
		return slices.Insert(b, at, slices.Clone(b[at:at+n])...)
	case 8:
		if rng.IntN(4) == 0 {
			return b[:at]
		}
		clear(b[at : at+n])
	}
	return b
}

// number puts an odd number where an aligned one may be.
func number(rng *rand.Rand, b []byte, at int) []byte {
	size := 1 << rng.IntN(4)
	at &^= size - 1
	if at+size > len(b) {
		return b
	}
	word := binary.LittleEndian.AppendUint64(nil, odd[rng.IntN(len(odd))]+uint64(rng.IntN(3)))
	copy(b[at:], word[:size])
	return b
}

// mutateText damages a text: its lines are repeated, moved, cut, and given odd
// numbers, long words and control characters; or it is damaged as bytes.
func mutateText(rng *rand.Rand, b []byte) []byte {
	if rng.IntN(3) == 0 {
		return mutate(rng, b)
	}
	pieces := []string{
		"\x1b[2J", "\x1b]0;x\x07", "\t", "\r", "\x00", "=", "%s%n", "-1", "0x", "99999999999999999999", " ", "\n\n", "\xff\xfe", "é", "#", "y\ny",
		string(slices.Repeat([]byte{'A'}, 1<<rng.IntN(17))),
	}
	b = slices.Clone(b)
	for range 1 + rng.IntN(6) {
		at := rng.IntN(len(b) + 1)
		b = slices.Insert(b, at, []byte(pieces[rng.IntN(len(pieces))])...)
	}
	return b
}
