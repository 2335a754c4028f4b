package ctype

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"sync"

	"kprobelab/internal/bounded"
)

// ErrBTF is type information that cannot be read.
var ErrBTF = errors.New("damaged BTF")

// The format of BTF (bpf/btf.rst, "BTF Type and String Encoding").
const (
	BTFMagic     = 0xeb9f
	BTFHeaderLen = 24
	btfTypeLen   = 12

	BTFInt      = 1
	BTFPtr      = 2
	BTFArray    = 3
	BTFStruct   = 4
	BTFUnion    = 5
	BTFEnum     = 6
	BTFFwd      = 7
	BTFTypedef  = 8
	BTFVolatile = 9
	BTFConst    = 10
	BTFRestrict = 11
	BTFFunc     = 12
	BTFProto    = 13
	BTFVar      = 14
	BTFDatasec  = 15
	BTFFloat    = 16
	BTFDeclTag  = 17
	BTFTypeTag  = 18
	BTFEnum64   = 19
)

// btfData holds the sizes of the data after a type of each kind: a fixed part, and a part for each
// of its members.
var btfData = [...]struct{ fixed, each int }{
	BTFInt: {4, 0}, BTFPtr: {}, BTFArray: {12, 0}, BTFStruct: {0, 12}, BTFUnion: {0, 12}, BTFEnum: {0, 8}, BTFFwd: {}, BTFTypedef: {},
	BTFVolatile: {}, BTFConst: {}, BTFRestrict: {}, BTFFunc: {}, BTFProto: {0, 8}, BTFVar: {4, 0}, BTFDatasec: {0, 12}, BTFFloat: {},
	BTFDeclTag: {4, 0}, BTFTypeTag: {}, BTFEnum64: {0, 12},
}

// BTF is the type information of a kernel, or of a module that builds on a kernel's. Types are read
// at their first use. It is safe for concurrent use.
type BTF struct {
	base       *BTF
	data, text []byte
	// first is the number of the first own type, places where each begins.
	first  uint32
	places []uint32

	indexOnce sync.Once
	seed      maphash.Seed
	// heads and next are lists of types by their names' hashes: own types, counted from 1.
	heads, next []uint32

	mu          sync.Mutex
	types       map[uint32]*Type
	members     map[uint32][]Member
	enumerators map[uint32][]Enumerator
	params      map[uint32][]Param
}

// ReadBTF reads a kernel's BTF; with a base, a module's.
func ReadBTF(raw []byte, base *BTF) (*BTF, error) {
	bad := func(format string, a ...any) (*BTF, error) {
		return nil, fmt.Errorf("%w: %s", ErrBTF, fmt.Sprintf(format, a...))
	}
	le := binary.LittleEndian
	switch {
	case len(raw) < BTFHeaderLen:
		return bad("it has no header")
	case le.Uint16(raw) != BTFMagic || raw[2] != 1:
		return bad("its header is not that of version 1, little-endian")
	}
	body := uint64(le.Uint32(raw[4:]))
	section := func(at int) []byte {
		from, n := body+uint64(le.Uint32(raw[at:])), uint64(le.Uint32(raw[at+4:]))
		if body < BTFHeaderLen || from+n > uint64(len(raw)) {
			return nil
		}
		return raw[from : from+n]
	}
	b := &BTF{base: base, first: 1, data: section(8), text: section(16)}
	b.types, b.members, b.enumerators, b.params = map[uint32]*Type{}, map[uint32][]Member{}, map[uint32][]Enumerator{}, map[uint32][]Param{}
	if b.data == nil || b.text == nil || base == nil && len(b.text) == 0 || len(b.text) > 0 && (b.text[len(b.text)-1] != 0 || base == nil && b.text[0] != 0) {
		return bad("its sections are not in the file")
	}
	if base != nil {
		b.first = base.end()
	}
	for at := 0; at < len(b.data); {
		n, ok := b.length(at)
		switch {
		case !ok:
			return bad("the type %d is of an unknown kind, or cut off", b.end())
		case len(b.places) >= bounded.Types:
			return bad("it has more than %d types", bounded.Types)
		}
		b.places = append(b.places, uint32(at))
		at += n
	}
	return b, nil
}

// length is the length of the type at a place.
func (b *BTF) length(at int) (int, bool) {
	if len(b.data)-at < btfTypeLen {
		return 0, false
	}
	h := header{b.data[at:]}
	if h.kind() < BTFInt || h.kind() >= len(btfData) {
		return 0, false
	}
	n := btfTypeLen + btfData[h.kind()].fixed + h.parts()*btfData[h.kind()].each
	return n, n <= len(b.data)-at
}

// end is the number after the last type's.
func (b *BTF) end() uint32 { return b.first + uint32(len(b.places)) }

// header is a type as it is written.
type header struct{ b []byte }

func (h header) word(i int) uint32 { return binary.LittleEndian.Uint32(h.b[4*i:]) }
func (h header) kind() int         { return int(h.word(1) >> 24 & 0x1f) }
func (h header) parts() int        { return int(h.word(1) & 0xffff) }
func (h header) flag() bool        { return h.word(1)>>31 != 0 }

// part is the i-th of the parts that follow, of words words each.
func (h header) part(i, words int) header { return header{h.b[btfTypeLen+4*i*words:]} }

// at is a type as it is written; ok is false if there is none with that number.
func (b *BTF) at(id uint32) (h header, ok bool) {
	switch {
	case id < b.first && b.base != nil:
		return b.base.at(id)
	case id < b.first || id >= b.end():
		return h, false
	}
	return header{b.data[b.places[id-b.first]:]}, true
}

// name is a string of the file, empty if there is none at that place.
func (b *BTF) name(at uint32) string { return string(b.nameBytes(at)) }

func (b *BTF) nameBytes(at uint32) []byte {
	if b.base != nil {
		if at < uint32(len(b.base.text)) {
			return b.base.nameBytes(at)
		}
		at -= uint32(len(b.base.text))
	}
	if at >= uint32(len(b.text)) {
		return nil
	}
	s := b.text[at:min(len(b.text), int(at)+bounded.TypeName)]
	return s[:max(bytes.IndexByte(s, 0), 0)]
}

// numbers are the own types of exactly that name, in the order of their numbers.
func (b *BTF) numbers(name string) iter.Seq[uint32] {
	b.indexOnce.Do(b.index)
	return func(yield func(uint32) bool) {
		if name == "" {
			return
		}
		for i := b.heads[maphash.String(b.seed, name)%uint64(len(b.heads))]; i != 0; i = b.next[i-1] {
			h, _ := b.at(b.first + i - 1)
			if string(b.nameBytes(h.word(0))) == name && !yield(b.first+i-1) {
				return
			}
		}
	}
}

func (b *BTF) index() {
	b.seed = maphash.MakeSeed()
	b.heads, b.next = make([]uint32, max(2*len(b.places), 1)), make([]uint32, len(b.places))
	for i := len(b.places) - 1; i >= 0; i-- {
		h := header{b.data[b.places[i]:]}
		if h.word(0) == 0 {
			continue
		}
		slot := maphash.Bytes(b.seed, b.nameBytes(h.word(0))) % uint64(len(b.heads))
		b.next[i], b.heads[slot] = b.heads[slot], uint32(i+1)
	}
}
