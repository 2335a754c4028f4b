package libcheck

import (
	"encoding/binary"
	"math/rand/v2"
	"reflect"
)

// Func is one kernel function, by its symbol, with a generator of calls.
type Func struct {
	Name string
	Gen  func(g *Gen) Call
}

// Call is one call of a function, with its expected outcome.
type Call struct {
	Args []any // uint64, Ref, or Sym
	// Bufs are the memory buffers that arguments refer to.
	Bufs []Buf
	Want Want
}

// call makes a call. A buffer (a Buf, or a string with its NUL or bytes that
// the call leaves alone) is passed as its address; buffers are numbered as they
// come. Without gives, the function returns nothing.
func call(args ...any) Call {
	var c Call
	for _, arg := range args {
		switch v := arg.(type) {
		case int, uint, int64, uint32, rune, byte:
			if word := reflect.ValueOf(v); word.CanInt() {
				arg = uint64(word.Int())
			} else {
				arg = word.Uint()
			}
		case string:
			arg = c.buf(in(cstr(v)), 0)
		case []byte:
			arg = c.buf(in(v), 0)
		case Buf:
			arg = c.buf(v, 0)
		case within:
			arg = c.buf(v.buf, v.off)
		}
		c.Args = append(c.Args, arg)
	}
	return c
}

// within passes the address of a byte inside a buffer.
type within struct {
	buf Buf
	off int
}

func (c *Call) buf(b Buf, off int) Ref {
	c.Bufs = append(c.Bufs, b)
	return Ref{len(c.Bufs) - 1, off}
}

// with adds buffers that no argument passes, but pointers refer to.
func (c Call) with(bufs ...Buf) Call {
	c.Bufs = append(c.Bufs, bufs...)
	return c
}

// gives sets the expected result of the call.
func (c Call) gives(w Want) Call {
	c.Want = w
	return c
}

// Buf is a guest buffer: its content before the call and after it.
type Buf struct {
	In []byte
	// Out is the content after the call; nil means unchanged, and AnyOut that the content is
	// undefined.
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
	// Bits is the number of low bits of rax to compare: 0 for a void function.
	Bits int
	// Value is the expected value, when Ref is nil.
	Value uint64
	// Ref is an expected pointer.
	Ref *Ref
}

// U64 and the others make a Want.
func U64[T int | uint64](v T) Want { return Want{Bits: 64, Value: uint64(v)} }
func U32(v uint32) Want            { return Want{Bits: 32, Value: uint64(v)} }
func U16(v uint16) Want            { return Want{Bits: 16, Value: uint64(v)} }
func U8(v uint8) Want              { return Want{Bits: 8, Value: uint64(v)} }
func I32(v int) Want               { return Want{Bits: 32, Value: uint64(uint32(int32(v)))} }
func I64(v int64) Want             { return Want{Bits: 64, Value: uint64(v)} }
func Pointer(b, off int) Want      { return Want{Bits: 64, Ref: &Ref{b, off}} }
func NullPointer() Want            { return Want{Bits: 64, Ref: &Ref{Buf: -1}} }
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

// ofNumber is a function of one number.
func ofNumber(name string, answer func(v uint64) Want) Func {
	return Func{name, func(g *Gen) Call {
		v := g.Number()
		return call(v).gives(answer(v))
	}}
}

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

// in is a buffer that a call leaves alone.
func in(b []byte) Buf { return Buf{In: b} }

// changed is a buffer, with its content before and after the call.
func changed(before, after []byte) Buf { return Buf{In: before, Out: after} }

// zeroed is a buffer of zeros that the call fills whole.
func zeroed(after []byte) Buf { return changed(make([]byte, len(after)), after) }

// moved is a pointer in memory that the call changes.
func moved(before, after Ref) Buf {
	return Buf{In: make([]byte, 8), Ptrs: []Ptr{{0, before}}, OutPtrs: []Ptr{{0, after}}}
}

// out is a marked buffer of so many bytes that the call fills in part.
func out(after []byte, size int) Buf { return changed(padded(nil, size), padded(after, size)) }

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
