package compare

import (
	"kprobelab/decoder"
	"math/rand/v2"
)

// Generator makes x86-64 instruction encodings as questions. It chooses by opcode map, prefixes and
// operand forms, so that every opcode of every map comes up with every mandatory prefix, W, L and
// operand form after a few million, where random bytes would mostly be additions. It makes the same
// windows of MaxInsnSize bytes for the same seed.
type Generator struct {
	r    rand.PCG
	bits uint64
	left int
}

// NewGenerator makes a generator.
func NewGenerator(seed uint64) *Generator {
	g := &Generator{}
	g.r.Seed(seed, 0x6b70726f6265)
	return g
}

// take is n random bits, at most 16.
func (g *Generator) take(n int) int {
	if g.left < n {
		g.bits, g.left = g.r.Uint64(), 64
	}
	v := int(g.bits & (1<<n - 1))
	g.bits >>= n
	g.left -= n
	return v
}

// oneIn is true once in 2^n.
func (g *Generator) oneIn(n int) bool { return g.take(n) == 0 }

// heads are the generators of the bytes before the last opcode byte, by weight.
var heads = [32]func(*Generator, []byte) []byte{
	primary, primary, primary, primary, primary, primary, primary, rex2Head,
	escape, escape, escape, escape, escape, escape, escape,
	escape38, escape38, escape3A, threeDNow,
	vex2, vex2, vex3, vex3, vex3, vex3, xop,
	evexHead, evexHead, evexHead, evexHead, evexHead, evexHead,
}

// Next fills w, decoder.MaxInsnSize bytes, with the next window.
func (g *Generator) Next(w []byte) {
	b := heads[g.take(5)](g, w[:0])
	if len(b) < decoder.MaxInsnSize {
		b = append(b, byte(g.take(8))) // the opcode
	}
	if len(b) < decoder.MaxInsnSize {
		b = append(b, byte(g.take(8))) // ModRM
	}
	rest := g.r.Uint64()
	for i := len(b); i < decoder.MaxInsnSize; i++ {
		w[i] = byte(rest)
		rest = rest>>8 | rest<<56
	}
}

var prefixes = [16]byte{
	0x66, 0xF3, 0xF2, 0xF0, 0x67, 0x66, 0xF3, 0xF2,
	0xF0, 0x67, 0x2E, 0x36, 0x3E, 0x26, 0x64, 0x65,
}

// legacyHead is none or some prefixes, and perhaps REX.
func (g *Generator) legacyHead(b []byte) []byte {
	n := [8]int{0, 0, 0, 0, 1, 1, 1, 2}[g.take(3)]
	if g.oneIn(6) { // to and past the longest instruction
		n = g.take(4)
	}
	for range min(n, 13) {
		b = append(b, prefixes[g.take(4)])
	}
	if g.oneIn(1) {
		b = append(b, 0x40|byte(g.take(4)))
		if g.oneIn(6) { // a prefix after REX takes its effect away
			b = append(b, prefixes[g.take(4)])
		}
	}
	return b[:min(len(b), decoder.MaxInsnSize-1)]
}

// vexHead is mostly nothing: few prefixes may stand before VEX.
func (g *Generator) vexHead(b []byte) []byte {
	if g.oneIn(4) {
		b = append(b, prefixes[g.take(4)])
	}
	if g.oneIn(7) {
		b = append(b, 0x40|byte(g.take(4)))
	}
	return b
}

func primary(g *Generator, b []byte) []byte { return g.legacyHead(b) }

func rex2Head(g *Generator, b []byte) []byte {
	return append(g.vexHead(b), rex2, byte(g.take(8)))
}

func (g *Generator) escapes(b []byte, e ...byte) []byte {
	b = g.legacyHead(b)
	return append(b[:min(len(b), decoder.MaxInsnSize-len(e))], e...)
}

func escape(g *Generator, b []byte) []byte    { return g.escapes(b, 0x0F) }
func escape38(g *Generator, b []byte) []byte  { return g.escapes(b, 0x0F, 0x38) }
func escape3A(g *Generator, b []byte) []byte  { return g.escapes(b, 0x0F, 0x3A) }
func threeDNow(g *Generator, b []byte) []byte { return g.escapes(b, 0x0F, 0x0F) }

// vvvv is mostly 1111, which most instructions require.
func (g *Generator) vvvv() byte {
	if g.oneIn(1) {
		return 0x78
	}
	return byte(g.take(4)) << 3
}

func vex2(g *Generator, b []byte) []byte {
	return append(g.vexHead(b), 0xC5, byte(g.take(1))<<7|g.vvvv()|byte(g.take(3)))
}

func vex3(g *Generator, b []byte) []byte {
	m := byte(g.take(2))
	if g.oneIn(5) {
		m = byte(g.take(5))
	}
	return append(g.vexHead(b), 0xC4, byte(g.take(3))<<5|m, byte(g.take(1))<<7|g.vvvv()|byte(g.take(3)))
}

func xop(g *Generator, b []byte) []byte {
	m := 8 + byte(g.take(2))
	if g.oneIn(4) {
		m = byte(g.take(5))
	}
	return append(g.vexHead(b), 0x8F, byte(g.take(3))<<5|m, byte(g.take(1))<<7|g.vvvv()|byte(g.take(3)))
}

// evexMaps are the maps that exist, and now and then map 0.
var evexMaps = [16]byte{1, 1, 1, 2, 2, 2, 2, 3, 3, 5, 5, 6, 0, 4, 4, 7}

func evexHead(g *Generator, b []byte) []byte {
	p0 := byte(g.take(4))<<4 | evexMaps[g.take(4)]
	p1 := byte(g.take(1))<<7 | g.vvvv() | 4 | byte(g.take(2))
	p2 := byte(g.take(2))<<5 | 8 // L'L, V'
	if g.oneIn(4) {
		p0 |= 8 // B4
	}
	if g.oneIn(4) {
		p1 &^= 4 // X4
	}
	if g.oneIn(2) {
		p2 |= 0x10 // b
	}
	if g.oneIn(2) {
		p2 &^= 8
	}
	if g.oneIn(1) {
		p2 |= byte(g.take(3)) // aaa
	}
	if g.oneIn(2) {
		p2 |= 0x80 // z
	}
	return append(g.vexHead(b), 0x62, p0, p1, p2)
}
