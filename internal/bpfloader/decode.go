//go:build linux

package main

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"

	"github.com/cilium/ebpf/btf"

	"kprobelab/internal/bounded"
)

// decode writes bytes as JSON, as their type says, with the members in their order. Bytes without a type, or of another size, are
// a text in hex.
func decode(t btf.Type, data []byte) json.RawMessage {
	var b bytes.Buffer
	if size, err := btf.Sizeof(t); t == nil || err != nil || size > len(data) || size == 0 && len(data) > 0 {
		hexed(&b, data)
	} else {
		show(&b, t, data[:size], 0)
	}
	return b.Bytes()
}

func hexed(b *bytes.Buffer, data []byte) { b.WriteString(strconv.Quote(hex.EncodeToString(data))) }

// text writes a text as JSON has it: bytes that are no UTF-8 become U+FFFD.
func text(b *bytes.Buffer, s string) {
	quoted, err := json.Marshal(s)
	if err != nil {
		quoted = []byte(`""`)
	}
	b.Write(quoted)
}

// show writes one value. data has exactly its size.
func show(b *bytes.Buffer, t btf.Type, data []byte, depth int) {
	if depth > bounded.BPFNested {
		b.WriteString("null")
		return
	}
	switch u := btf.UnderlyingType(t).(type) {
	case *btf.Int:
		number(b, word(data), 8*len(data), u.Encoding == btf.Signed, u.Encoding == btf.Bool, len(data) > 8, data)
	case *btf.Pointer:
		b.WriteString(strconv.Quote("0x" + strconv.FormatUint(word(data), 16)))
	case *btf.Enum:
		for _, v := range u.Values {
			if mask(v.Value, len(data)) == word(data) {
				text(b, v.Name)
				return
			}
		}
		number(b, word(data), 8*len(data), u.Signed, false, false, data)
	case *btf.Float:
		float(b, data)
	case *btf.Array:
		array(b, u, data, depth)
	case *btf.Struct:
		members(b, u.Members, data, depth)
	case *btf.Union:
		members(b, u.Members, data, depth)
	case *btf.Datasec:
		b.WriteByte('{')
		first := true
		for _, v := range u.Vars {
			variable, ok := v.Type.(*btf.Var)
			if size := uint64(v.Size); ok && uint64(v.Offset)+size <= uint64(len(data)) {
				named(b, &first, variable.Name)
				b.Write(decode(variable.Type, data[v.Offset:uint64(v.Offset)+size]))
			}
		}
		b.WriteByte('}')
	default:
		hexed(b, data)
	}
}

// word is the number in up to eight bytes.
func word(data []byte) uint64 {
	var b [8]byte
	copy(b[:], data)
	return binary.LittleEndian.Uint64(b[:])
}

func mask(v uint64, size int) uint64 {
	if size >= 8 {
		return v
	}
	return v & (1<<(8*size) - 1)
}

func number(b *bytes.Buffer, v uint64, bits int, signed, truth, wide bool, data []byte) {
	switch {
	case wide:
		hexed(b, data)
	case truth:
		b.WriteString(strconv.FormatBool(v != 0))
	case signed && bits > 0 && bits < 64:
		b.WriteString(strconv.FormatInt(int64(v<<(64-bits))>>(64-bits), 10))
	case signed:
		b.WriteString(strconv.FormatInt(int64(v), 10))
	default:
		b.WriteString(strconv.FormatUint(v, 10))
	}
}

func float(b *bytes.Buffer, data []byte) {
	f := math.NaN()
	switch len(data) {
	case 4:
		f = float64(math.Float32frombits(uint32(word(data))))
	case 8:
		f = math.Float64frombits(word(data))
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		text(b, strconv.FormatFloat(f, 'g', -1, 64))
		return
	}
	b.WriteString(strconv.FormatFloat(f, 'g', -1, 64))
}

func array(b *bytes.Buffer, a *btf.Array, data []byte, depth int) {
	if isChar(a.Type) {
		s, _, _ := bytes.Cut(data, []byte{0})
		text(b, string(s))
		return
	}
	size, err := btf.Sizeof(a.Type)
	if err != nil || size == 0 {
		b.WriteString("[]")
		return
	}
	b.WriteByte('[')
	for i := 0; i+size <= len(data); i += size {
		if i > 0 {
			b.WriteByte(',')
		}
		show(b, a.Type, data[i:i+size], depth+1)
	}
	b.WriteByte(']')
}

// named begins a member of an object.
func named(b *bytes.Buffer, first *bool, name string) {
	if !*first {
		b.WriteByte(',')
	}
	*first = false
	text(b, name)
	b.WriteByte(':')
}

func members(b *bytes.Buffer, list []btf.Member, data []byte, depth int) {
	b.WriteByte('{')
	first := true
	membersOf(b, &first, list, data, depth)
	b.WriteByte('}')
}

// membersOf writes members. Those of a structure without a name are written as the outer one's.
func membersOf(b *bytes.Buffer, first *bool, list []btf.Member, data []byte, depth int) {
	for _, m := range list {
		at, bits := uint64(m.Offset/8), uint64(m.BitfieldSize)
		size, err := btf.Sizeof(m.Type)
		if err != nil || at > uint64(len(data)) || bits == 0 && at+uint64(size) > uint64(len(data)) {
			continue
		}
		if bits != 0 {
			named(b, first, m.Name)
			rest := data[at:min(at+8, uint64(len(data)))]
			v := word(rest) >> (m.Offset % 8)
			if bits < 64 {
				v &= 1<<bits - 1
			}
			i, _ := btf.UnderlyingType(m.Type).(*btf.Int)
			number(b, v, int(bits), i != nil && i.Encoding == btf.Signed, false, false, rest)
			continue
		}
		if m.Name == "" && depth < bounded.BPFNested {
			switch u := btf.UnderlyingType(m.Type).(type) {
			case *btf.Struct:
				membersOf(b, first, u.Members, data[at:at+uint64(size)], depth+1)
			case *btf.Union:
				membersOf(b, first, u.Members, data[at:at+uint64(size)], depth+1)
			}
			continue
		}
		named(b, first, m.Name)
		show(b, m.Type, data[at:at+uint64(size)], depth+1)
	}
}
