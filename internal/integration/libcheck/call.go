package libcheck

import (
	"encoding/binary"
	"math/rand/v2"
)

// Func is one kernel function with a generator of calls.
type Func struct {
	// Name is the symbol in the image.
	Name string
	// Gen makes one call from random choices.
	Gen func(g *Gen) Call
}

// Call is one call of a function and what must come of it.
type Call struct {
	Args []any // uint64, Ref, or Sym
	// Bufs are the memory buffers that arguments refer to.
	Bufs []Buf
	Want Want
}

// Buf is a guest buffer: its content before the call and after it.
type Buf struct {
	In []byte
	// Out is the content after the call; nil means unchanged, and AnyOut
	// that no one says what it holds.
	Out []byte
	// AnyOut is true for scratch memory.
	AnyOut bool
	// Ptrs are pointers to other buffers that lie in this one before the call.
	Ptrs []Ptr
	// OutPtrs are the pointers after it; nil means the same as before.
	OutPtrs []Ptr
}

// Ptr is a pointer stored at Off that refers to To.
type Ptr struct {
	Off int
	To  Ref
}

// Ref is the address of a byte of a buffer. A Ref with Buf < 0 is NULL.
type Ref struct{ Buf, Off int }

// Null is the null pointer.
var Null = Ref{Buf: -1}

// Sym is the address of a function of the image, passed as a callback.
type Sym string

// Want is the expected return value.
type Want struct {
	// Bits is how many low bits of rax count: 0 for a void function.
	Bits int
	// Value is the expected value, when Ref is nil.
	Value uint64
	// Ref is an expected pointer.
	Ref *Ref
}

// Void, U64, U32, U8, Bool, I32 and Pointer make a Want.
func Void() Want              { return Want{} }
func U64(v uint64) Want       { return Want{Bits: 64, Value: v} }
func U32(v uint32) Want       { return Want{Bits: 32, Value: uint64(v)} }
func U16(v uint16) Want       { return Want{Bits: 16, Value: uint64(v)} }
func U8(v uint8) Want         { return Want{Bits: 8, Value: uint64(v)} }
func I32(v int) Want          { return Want{Bits: 32, Value: uint64(uint32(int32(v)))} }
func I64(v int64) Want        { return Want{Bits: 64, Value: uint64(v)} }
func Pointer(b, off int) Want { return Want{Bits: 64, Ref: &Ref{b, off}} }
func NullPointer() Want       { return Want{Bits: 64, Ref: &Ref{Buf: -1}} }
func Bool(b bool) Want {
	if b {
		return U8(1)
	}
	return U8(0)
}

// PointerOrNull is a pointer into buffer b, or NULL where off is negative.
func PointerOrNull(b, off int) Want {
	if off < 0 {
		return NullPointer()
	}
	return Pointer(b, off)
}

// Gen makes arguments. The same seed gives the same calls.
type Gen struct{ *rand.Rand }

// NewGen returns a generator for the seed.
func NewGen(seed uint64) *Gen { return &Gen{rand.New(rand.NewPCG(seed, 0x6b70726f6265))} }

// Bytes returns n random bytes.
func (g *Gen) Bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	return b
}

// Text returns a string of n letters of the alphabet.
func (g *Gen) Text(alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[g.IntN(len(alphabet))]
	}
	return string(b)
}

// Word returns a short string over a small alphabet, so that two of them
// often share a prefix.
func (g *Gen) Word() string { return g.Text("abcAB .", g.IntN(24)) }

// Number returns an integer whose magnitude is spread over all widths.
func (g *Gen) Number() uint64 { return g.Uint64() >> g.IntN(64) }

// cstr is s with the terminating NUL.
func cstr(s string) []byte { return append([]byte(s), 0) }

// padded is b in a buffer of n bytes filled up with a mark.
func padded(b []byte, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = 0xa5
	}
	copy(out, b)
	return out
}

// in makes an input buffer that a call leaves alone.
func in(b []byte) Buf { return Buf{In: b} }

// at is the address of buffer b's first byte.
func at(b int) Ref { return Ref{Buf: b} }

func words(v []uint64) []byte {
	b := make([]byte, 0, 8*len(v))
	for _, w := range v {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	return b
}

func n(v int) uint64 { return uint64(int64(v)) }

// All lists every function, in groups.
func All() []Func {
	var all []Func
	for _, group := range [][]Func{
		stringFuncs, memoryFuncs, numberFuncs, printFuncs, mathFuncs, bitFuncs,
		checksumFuncs, hashFuncs, cryptoFuncs, timeFuncs, unicodeFuncs,
		orderFuncs, treeFuncs, packFuncs, networkFuncs, parseFuncs,
	} {
		all = append(all, group...)
	}
	return all
}
