package archive

import (
	"bytes"
	"encoding/binary"

	"kprobelab/kimage"
)

// packTypes is the section of a kernel's BTF and of its modules'. A module's
// refers to the kernel's by place, so with modules nothing is left out.
func packTypes(raw []byte, modules [][]byte) []byte {
	if len(modules) == 0 {
		if less, ok := reduceBTF(raw); ok {
			raw = less
		}
	}
	var out []byte
	for _, b := range append([][]byte{raw}, modules...) {
		out = append(binary.AppendUvarint(out, uint64(len(b))), b...)
	}
	return out
}

func readTypes(b []byte) (*kimage.Types, error) {
	var list [][]byte
	for len(b) > 0 {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used) {
			return nil, damaged("they end early")
		}
		list = append(list, b[used:used+int(n)])
		b = b[used+int(n):]
	}
	if len(list) == 0 {
		return nil, damaged("there are none")
	}
	return kimage.NewTypes(list[0], list[1:])
}

// The kinds of types in BTF that are treated in some way (linux/btf.h, BTF_KIND_).
const (
	btfInt       = 1
	btfArray     = 3
	btfStruct    = 4
	btfUnion     = 5
	btfEnum      = 6
	btfProto     = 13
	btfVar       = 14
	btfDatasec   = 15
	btfDeclTag   = 17
	btfEnum64    = 19
	btfMagic     = 0xeb9f
	btfHeaderLen = 24
)

// reduceBTF leaves out of BTF what no definition of a probe can ask: the values of
// enumerations, and what sections hold. Every type keeps its number. False where
// the BTF is not in the form that is known here; then it must be kept whole.
func reduceBTF(raw []byte) (out []byte, ok bool) {
	le := binary.LittleEndian
	if len(raw) < btfHeaderLen || le.Uint16(raw) != btfMagic || raw[2] != 1 {
		return nil, false
	}
	from := uint64(le.Uint32(raw[4:]))
	types, ok1 := piece(raw, from+uint64(le.Uint32(raw[8:])), le.Uint32(raw[12:]))
	strs, ok2 := piece(raw, from+uint64(le.Uint32(raw[16:])), le.Uint32(raw[20:]))
	if !ok1 || !ok2 {
		return nil, false
	}
	r := btfReducer{strs: strs, moved: map[uint32]uint32{0: 0}, names: []byte{0}}
	for len(types) > 0 {
		n := r.one(types)
		if n == 0 || r.bad {
			return nil, false
		}
		types = types[n:]
	}
	out = make([]byte, btfHeaderLen, btfHeaderLen+len(r.types)+len(r.names))
	le.PutUint16(out, btfMagic)
	out[2] = 1
	le.PutUint32(out[4:], btfHeaderLen)
	le.PutUint32(out[12:], uint32(len(r.types)))
	le.PutUint32(out[16:], uint32(len(r.types)))
	le.PutUint32(out[20:], uint32(len(r.names)))
	return append(append(out, r.types...), r.names...), true
}

func piece(b []byte, off uint64, n uint32) ([]byte, bool) {
	if off > uint64(len(b)) || uint64(n) > uint64(len(b))-off {
		return nil, false
	}
	return b[off : off+uint64(n)], true
}

// btfReducer writes types and names anew.
type btfReducer struct {
	strs         []byte
	moved        map[uint32]uint32
	types, names []byte
	bad          bool
}

// name is where a name is now.
func (r *btfReducer) name(off uint32) uint32 {
	if to, ok := r.moved[off]; ok {
		return to
	}
	end := -1
	if uint64(off) < uint64(len(r.strs)) {
		end = bytes.IndexByte(r.strs[off:], 0)
	}
	if end < 0 {
		r.bad = true
		return 0
	}
	to := uint32(len(r.names))
	r.names = append(r.names, r.strs[off:int(off)+end+1]...)
	r.moved[off] = to
	return to
}

// one takes the type at the front of b over. It returns the type's length, 0 where
// it cannot be read.
func (r *btfReducer) one(b []byte) int {
	le := binary.LittleEndian
	if len(b) < 12 {
		return 0
	}
	name, info := le.Uint32(b), le.Uint32(b[4:])
	kind, count := info>>24&0x1f, int(info&0xffff)
	each, keep := 0, true // the length of a member, and whether the members stay
	more := 0
	switch kind {
	case btfInt, btfVar, btfDeclTag:
		more = 4
	case btfArray:
		more = 12
	case btfStruct, btfUnion:
		each = 12
	case btfProto:
		each = 8
	case btfEnum:
		each, keep = 8, false
	case btfDatasec, btfEnum64:
		each, keep = 12, false
	case 2, 7, 8, 9, 10, 11, 12, 16, 18: // a name and a reference: pointers, typedefs, functions, …
	default:
		return 0
	}
	length := 12 + more + each*count
	if length > len(b) {
		return 0
	}
	if !keep {
		info &^= 0xffff
	}
	r.types = le.AppendUint32(r.types, r.name(name))
	r.types = le.AppendUint32(r.types, info)
	r.types = append(r.types, b[8:12+more]...)
	if keep {
		for m := b[12+more : length]; len(m) > 0 && each > 0; m = m[each:] {
			r.types = le.AppendUint32(r.types, r.name(le.Uint32(m)))
			r.types = append(r.types, m[4:each]...)
		}
	}
	return length
}
