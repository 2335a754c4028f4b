package ctype

import (
	"iter"

	"kprobelab/internal/bounded"
)

// Func is a function of BTF.
type Func struct {
	Name string
	// ID is the function's number.
	ID int
	// Proto is a Function.
	Proto *Type
}

// Type is a type by its number. A tag of a type is passed over. What is no type, a function or a variable among it, is void.
func (b *BTF) Type(id int) *Type {
	if id < 0 || uint64(id) >= uint64(b.end()) {
		return None
	}
	return b.typ(uint32(id))
}

// Has reports whether there is a type with a number.
func (b *BTF) Has(id int) bool { return id > 0 && uint64(id) < uint64(b.end()) }

func (b *BTF) typ(id uint32) *Type {
	for range bounded.TypeDepth {
		h, ok := b.at(id)
		switch {
		case !ok:
			return None
		case h.kind() == BTFTypeTag:
			id = h.word(2)
			continue
		case id < b.first:
			return b.base.typ(id)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		t := b.types[id]
		if t == nil {
			t = b.read(id, h)
			b.types[id] = t
		}
		return t
	}
	return Endless
}

// read makes a type, without others.
func (b *BTF) read(id uint32, h header) *Type {
	t := &Type{Name: b.name(h.word(0)), ID: int(id), Parts: written{b, h, id}}
	switch h.kind() {
	case BTFInt:
		const signed, char = 1, 2
		t.Kind, t.Bytes = Base, int64(h.word(2))
		encoding := h.word(3) >> 24 & 0xf
		t.Signed = encoding&signed != 0
		t.Char = t.Bytes == 1 && (encoding&char != 0 || t.Name == "char" || t.Name == "unsigned char")
	case BTFFloat:
		t.Kind, t.Bytes, t.Float = Base, int64(h.word(2)), true
	case BTFPtr:
		t.Kind, t.Bytes = Pointer, word
	case BTFStruct:
		t.Kind, t.Bytes = Struct, int64(h.word(2))
	case BTFUnion:
		t.Kind, t.Bytes = Union, int64(h.word(2))
	case BTFArray:
		t.Kind, t.Count = Array, int64(h.word(5))
	case BTFEnum, BTFEnum64:
		t.Kind, t.Bytes, t.Signed = Enum, int64(h.word(2)), h.flag()
	case BTFTypedef:
		t.Kind = Typedef
	case BTFConst:
		t.Kind, t.Name = Qualified, "const"
	case BTFVolatile:
		t.Kind, t.Name = Qualified, "volatile"
	case BTFRestrict:
		t.Kind, t.Name = Qualified, "restrict"
	case BTFProto:
		t.Kind = Function
		n := h.parts()
		t.Variadic = n > 0 && h.part(n-1, 2).word(0) == 0 && h.part(n-1, 2).word(1) == 0
	case BTFFwd:
		t.Kind, t.Incomplete = Struct, true
		if h.flag() {
			t.Kind = Union
		}
	default:
		return None
	}
	return t
}

// written are the parts of a type as the file has them.
type written struct {
	b *BTF
	header
	id uint32
}

// kept is a list of parts, which is made once.
func kept[T any](b *BTF, lists map[uint32][]T, id uint32, list func() []T) []T {
	b.mu.Lock()
	have, ok := lists[id]
	b.mu.Unlock()
	if ok {
		return have
	}
	made := list()
	b.mu.Lock()
	defer b.mu.Unlock()
	lists[id] = made
	return made
}

func (w written) Target() *Type {
	switch w.kind() {
	case BTFPtr, BTFTypedef, BTFConst, BTFVolatile, BTFRestrict, BTFProto:
		return w.b.typ(w.word(2))
	case BTFArray:
		return w.b.typ(w.word(3))
	}
	return None
}

func (w written) Members() []Member { return kept(w.b, w.b.members, w.id, w.readMembers) }

func (w written) readMembers() []Member {
	if w.kind() != BTFStruct && w.kind() != BTFUnion {
		return nil
	}
	out := make([]Member, w.parts())
	for i := range out {
		p := w.part(i, 3)
		offset, bits := p.word(2), uint32(0)
		if w.flag() {
			offset, bits = offset&0xffffff, offset>>24
		} else {
			more, n := w.b.inInteger(p.word(1))
			offset, bits = offset+more, n
		}
		t := w.b.typ(p.word(1))
		m := Member{Name: w.b.name(p.word(0)), Type: t, Offset: int64(offset / 8)}
		if unit := t.Size() * 8; bits > 0 && unit > 0 {
			at := int64(offset)
			m.Bits, m.Offset, m.Bit = int(bits), at/unit*unit/8, int(at%unit)
		}
		out[i] = m
	}
	return out
}

// inInteger is the place of a bitfield of the older format, in which an integer's type has it; no bits for another type.
func (b *BTF) inInteger(id uint32) (offset, bits uint32) {
	h, ok := b.at(id)
	if !ok || h.kind() != BTFInt {
		return 0, 0
	}
	offset, bits = h.word(3)>>16&0xff, h.word(3)&0xff
	if offset == 0 && bits/8 == h.word(2) {
		return 0, 0
	}
	return offset, bits
}

func (w written) Enumerators() []Enumerator {
	return kept(w.b, w.b.enumerators, w.id, w.readEnumerators)
}

func (w written) readEnumerators() []Enumerator {
	out := make([]Enumerator, w.parts())
	for i := range out {
		if w.kind() == BTFEnum64 {
			p := w.part(i, 3)
			out[i] = Enumerator{w.b.name(p.word(0)), int64(uint64(p.word(2))<<32 | uint64(p.word(1)))}
			continue
		}
		p := w.part(i, 2)
		out[i] = Enumerator{w.b.name(p.word(0)), int64(p.word(1))}
		if w.flag() {
			out[i].Value = int64(int32(p.word(1)))
		}
	}
	return out
}

func (w written) Params() []Param { return kept(w.b, w.b.params, w.id, w.readParams) }

func (w written) readParams() []Param {
	if w.kind() != BTFProto {
		return nil
	}
	n := w.parts()
	if n > 0 && w.part(n-1, 2).word(0) == 0 && w.part(n-1, 2).word(1) == 0 {
		n-- // "..."
	}
	out := make([]Param, n)
	for i := range out {
		p := w.part(i, 2)
		out[i] = Param{w.b.name(p.word(0)), w.b.typ(p.word(1))}
	}
	return out
}

// Named are the own types of exactly that name, in the order of their numbers.
func (b *BTF) Named(name string) iter.Seq[*Type] {
	return func(yield func(*Type) bool) {
		for id := range b.numbers(name) {
			if t := b.typ(id); t != None && !yield(t) {
				return
			}
		}
	}
}

// Types are all own types, in the order of their numbers.
func (b *BTF) Types() iter.Seq[*Type] {
	return func(yield func(*Type) bool) {
		for id := b.first; id < b.end(); id++ {
			if h, _ := b.at(id); h.kind() == BTFTypeTag {
				continue
			}
			if t := b.typ(id); t != None && !yield(t) {
				return
			}
		}
	}
}

// Function is the first own function of a name that has a prototype.
func (b *BTF) Function(name string) (Func, bool) {
	for id := range b.numbers(name) {
		if f, ok := b.FunctionAt(int(id)); ok {
			return f, true
		}
	}
	return Func{}, false
}

// FunctionAt is the function with a number, if it has a prototype of at most bounded.Params parameters.
func (b *BTF) FunctionAt(id int) (Func, bool) {
	if id < 0 || uint64(id) >= uint64(b.end()) {
		return Func{}, false
	}
	h, ok := b.at(uint32(id))
	if !ok || h.kind() != BTFFunc {
		return Func{}, false
	}
	t := b.typ(h.word(2))
	return Func{b.name(h.word(0)), id, t}, t.Kind == Function && len(t.Params()) <= bounded.Params
}

// Entry is a type or a function with its number; a variable and a section are void.
type Entry struct {
	ID   int
	Type *Type
	// Func has a prototype if the entry is a function.
	Func Func
}

// Entries are all own types and functions, in the order of their numbers.
func (b *BTF) Entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for id := b.first; id < b.end(); id++ {
			e := Entry{ID: int(id), Type: b.typ(id)}
			if f, ok := b.FunctionAt(e.ID); ok {
				e.Func = f
			}
			if !yield(e) {
				return
			}
		}
	}
}

// Variable is the type of the first own variable of a name.
func (b *BTF) Variable(name string) (*Type, bool) {
	for id := range b.numbers(name) {
		if h, _ := b.at(id); h.kind() == BTFVar {
			return b.typ(h.word(2)), true
		}
	}
	return nil, false
}
