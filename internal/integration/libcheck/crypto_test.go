package libcheck

import (
	"bytes"
	"crypto/aes"
	"crypto/sha1"
	"crypto/sha256"
	"encoding"
	"encoding/binary"
	"math/bits"
)

var be = binary.BigEndian

// cryptoFuncs are lib/crypto, lib/sha1.c and lib/random32.c.
var cryptoFuncs = []Func{
	{"sha256", func(g *Gen) Call {
		b := g.Bytes(g.IntN(200))
		sum := sha256.Sum256(b)
		return call(b, len(b), zeroed(sum[:]))
	}},
	{"sha1_init", func(g *Gen) Call {
		return call(changed(g.Bytes(20), swapWords(sha1State(nil))))
	}},
	{"sha1_transform", func(g *Gen) Call {
		block := g.Bytes(64)
		return call(changed(swapWords(sha1State(nil)), swapWords(sha1State(block))), block, Buf{In: make([]byte, 64), AnyOut: true})
	}},
	{"aes_expandkey", func(g *Gen) Call {
		key := g.Bytes([]int{16, 24, 32}[g.IntN(3)])
		return call(Buf{In: make([]byte, 484), AnyOut: true}, key, len(key)).gives(I32(0))
	}},
	aesFunc("aes_encrypt"),
	{"chacha_block_generic", func(g *Gen) Call {
		state := g.Bytes(64)
		next := bytes.Clone(state)
		le.PutUint32(next[48:], le.Uint32(next[48:])+1)
		return call(changed(state, next), zeroed(chachaBlock(state)), 20)
	}},
	{"hchacha_block_generic", func(g *Gen) Call {
		state := g.Bytes(64)
		mixed := chachaRounds(state)
		return call(state, zeroed(append(bytes.Clone(mixed[:16]), mixed[48:]...)), 20)
	}},
	{"prandom_u32_state", func(g *Gen) Call {
		state := g.Bytes(16)
		next, v := tausworthe(state)
		return call(changed(state, next)).gives(U32(v))
	}},
	{"prandom_bytes_state", func(g *Gen) Call {
		state, size := g.Bytes(16), 4*(1+g.IntN(10))
		next, out := state, []byte(nil)
		for range size / 4 {
			var v uint32
			next, v = tausworthe(next)
			out = le.AppendUint32(out, v)
		}
		return call(changed(state, next), zeroed(out), size)
	}},
}

// sha1State is the chaining value after the whole blocks of b, big endian.
func sha1State(b []byte) []byte {
	h := sha1.New()
	h.Write(b)
	state, err := h.(encoding.BinaryMarshaler).MarshalBinary()
	if err != nil {
		panic("BUG: sha1 has no state: " + err.Error())
	}
	return state[4:24]
}

// swapWords turns big-endian words into little-endian ones.
func swapWords(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i += 4 {
		out = le.AppendUint32(out, be.Uint32(b[i:]))
	}
	return out
}

// aesFunc encrypts with a key schedule of its own making: struct
// crypto_aes_ctx is 60 words for encryption, 60 for decryption, key length.
func aesFunc(name string) Func {
	return Func{name, func(g *Gen) Call {
		key, block := g.Bytes(16), g.Bytes(16)
		cipher, err := aes.NewCipher(key)
		if err != nil {
			panic("BUG: " + err.Error())
		}
		out := make([]byte, 16)
		cipher.Encrypt(out, block)
		ctx := make([]byte, 484)
		copy(ctx, aesSchedule(key))
		le.PutUint32(ctx[480:], 16)
		return call(ctx, zeroed(out), block)
	}}
}

// aesSchedule is FIPS 197's key expansion for a 128-bit key, with the S-box
// computed from its definition.
func aesSchedule(key []byte) []byte {
	w := bytes.Clone(key)
	rcon := byte(1)
	for i := 16; i < 176; i += 4 {
		t := bytes.Clone(w[i-4 : i])
		if i%16 == 0 {
			t = []byte{sbox(t[1]) ^ rcon, sbox(t[2]), sbox(t[3]), sbox(t[0])}
			rcon = xtime(rcon)
		}
		for j := range t {
			w = append(w, w[i-16+j]^t[j])
		}
	}
	return w
}

func xtime(b byte) byte { return b<<1 ^ 0x1b*(b>>7) }

func gmul(a, b byte) (p byte) {
	for ; b != 0; b >>= 1 {
		p ^= a * (b & 1)
		a = xtime(a)
	}
	return p
}

func sbox(b byte) byte {
	inverse := byte(1)
	for range 254 { // b^254 is the inverse in GF(2^8)
		inverse = gmul(inverse, b)
	}
	s := inverse
	for i := 1; i <= 4; i++ {
		s ^= bits.RotateLeft8(inverse, i)
	}
	return s ^ 0x63
}

// chachaRounds is the 20 rounds of RFC 8439, without the final addition.
func chachaRounds(state []byte) []byte {
	var x [16]uint32
	for i := range x {
		x[i] = le.Uint32(state[4*i:])
	}
	quarter := func(a, b, c, d int) {
		x[a] += x[b]
		x[d] = bits.RotateLeft32(x[d]^x[a], 16)
		x[c] += x[d]
		x[b] = bits.RotateLeft32(x[b]^x[c], 12)
		x[a] += x[b]
		x[d] = bits.RotateLeft32(x[d]^x[a], 8)
		x[c] += x[d]
		x[b] = bits.RotateLeft32(x[b]^x[c], 7)
	}
	for range 10 {
		for i := range 4 {
			quarter(i, 4+i, 8+i, 12+i)
		}
		for i := range 4 {
			quarter(i, 4+(i+1)%4, 8+(i+2)%4, 12+(i+3)%4)
		}
	}
	var out []byte
	for _, w := range x {
		out = le.AppendUint32(out, w)
	}
	return out
}

func chachaBlock(state []byte) []byte {
	out := chachaRounds(state)
	for i := 0; i < 64; i += 4 {
		le.PutUint32(out[i:], le.Uint32(out[i:])+le.Uint32(state[i:]))
	}
	return out
}

// tausworthe is one step of L'Ecuyer's lfsr113.
func tausworthe(state []byte) (next []byte, value uint32) {
	for i, p := range [4]struct {
		a, b, d int
		c       uint32
	}{{6, 13, 18, ^uint32(1)}, {2, 27, 2, ^uint32(7)}, {13, 21, 7, ^uint32(15)}, {3, 12, 13, ^uint32(127)}} {
		s := le.Uint32(state[4*i:])
		s = (s&p.c)<<p.d ^ (s<<p.a^s)>>p.b
		next = le.AppendUint32(next, s)
		value ^= s
	}
	return next, value
}
