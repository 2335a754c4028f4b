package ctypes

import (
	"encoding/binary"

	"kprobelab/internal/ctype"
)

// Bits of BTF (linux/btf.h); its kinds and header are ctype's.
const (
	btfIntSigned = 1 << 24
	// btfKindFlag, beside a structure's kind: members have widths.
	btfKindFlag = 1 << 7
	btfGlobal   = 1
)

// maxCount is the most members or parameters that BTF can count.
const maxCount = 1<<16 - 1

// Writer makes BTF of tables: a kernel's, then modules' that build on it. Except for the
// first types, their numbers differ from those in the BTF that the tables were made of.
type Writer struct{ kernel *btfWriter }

// Kernel is the BTF of a kernel's table.
func (w *Writer) Kernel(t *Table) []byte {
	w.kernel = newBTFWriter(t, nil)
	return w.kernel.bytes()
}

// Module is the BTF of a module's table, after the kernel's.
func (w *Writer) Module(t *Table) []byte { return newBTFWriter(t, w.kernel).bytes() }

type btfWriter struct {
	*Table
	base        *btfWriter
	types, strs []byte
	names       map[string]uint32
	// ids are the numbers of types, order the types by their numbers; next is the
	// number after the last one.
	ids   map[ref]uint32
	order []ref
	next  uint32
}

func newBTFWriter(t *Table, base *btfWriter) *btfWriter {
	w := &btfWriter{Table: t, base: base, names: map[string]uint32{"": 0}, ids: map[ref]uint32{0: 0}, next: 1}
	own := 1
	if base != nil {
		w.next, own = base.next, len(base.nodes)+1
	} else {
		w.strs = []byte{0}
	}
	w.number(own)
	for i, r := range w.order {
		if i < len(w.first) && w.ids[r] != uint32(i+1) {
			w.head("", ctype.BTFConst, 0, w.id(r)) // one of the first types, which is an earlier one
			continue
		}
		w.write(r)
	}
	for i := range t.funcs {
		w.function(&t.funcs[i])
	}
	return w
}

// number gives every type its number before any is written: they refer to each
// other. own is the first own node.
func (w *btfWriter) number(own int) {
	for _, r := range w.first {
		if w.ids[r] == 0 && r != 0 {
			w.ids[r] = w.next
		}
		w.order = append(w.order, r)
		w.next++
	}
	one := func(r ref) {
		if w.id(r) == 0 && r != 0 {
			w.ids[r] = w.next
			w.order = append(w.order, r)
			w.next++
		}
	}
	pointers := func(r ref) {
		for p := 0; p <= r.pointers(); p++ {
			if r.node() == 0 && p == 0 {
				continue
			}
			one(refTo(r.node(), p))
		}
	}
	for n := own; n < w.end(); n++ {
		one(refTo(n, 0))
	}
	for _, r := range w.first {
		pointers(r)
	}
	w.eachRef(pointers)
}

// id is a type's number, 0 for void.
func (w *btfWriter) id(r ref) uint32 {
	if w.base != nil {
		if id := w.base.ids[r]; id != 0 {
			return id
		}
	}
	return w.ids[r]
}

func (w *btfWriter) head(name string, kind, count, value uint32) {
	w.word(w.name(name))
	w.word(kind<<24 | count)
	w.word(value)
}

func (w *btfWriter) word(v uint32) { w.types = binary.LittleEndian.AppendUint32(w.types, v) }

// name returns the offset of a name among the strings. A module's strings come after the kernel's.
func (w *btfWriter) name(s string) uint32 {
	if at, ok := w.names[s]; ok {
		return at
	}
	at := uint32(len(w.strs))
	if w.base != nil {
		at += uint32(len(w.base.strs))
	}
	w.names[s] = at
	w.strs = append(append(w.strs, s...), 0)
	return at
}

func (w *btfWriter) write(r ref) {
	if p := r.pointers(); p > 0 {
		w.head("", ctype.BTFPtr, 0, w.id(refTo(r.node(), p-1)))
		return
	}
	if r == 0 {
		w.head("", ctype.BTFConst, 0, 0)
		return
	}
	n := w.at(r.node())
	switch n.kind {
	case kindUnsigned, kindSigned, kindChar:
		w.numeral(n)
	case kindEnum:
		w.head("", ctype.BTFEnum, 0, n.size)
	case kindFloat:
		w.head("float", ctype.BTFFloat, 0, n.size)
	case kindPointer:
		w.head("", ctype.BTFPtr, 0, w.id(n.to))
	case kindArray:
		w.head("", ctype.BTFArray, 0, 0)
		w.word(w.id(n.to))
		w.word(0)
		w.word(n.size)
	case kindStruct, kindUnion:
		w.composite(n)
	default:
		w.head("other", ctype.BTFFwd, 0, 0)
	}
}

func (w *btfWriter) numeral(n *node) {
	name, encoding := "unsigned", uint32(0)
	switch n.kind {
	case kindChar:
		name, encoding = "char", btfIntSigned
	case kindSigned:
		name, encoding = "signed", btfIntSigned
	}
	w.head(name, ctype.BTFInt, 0, n.size)
	w.word(encoding | 8*n.size&0xff)
}

func (w *btfWriter) composite(n *node) {
	kind := uint32(ctype.BTFStruct)
	if n.kind == kindUnion {
		kind = ctype.BTFUnion
	}
	count := min(len(n.members), maxCount)
	w.head(n.name, kind|btfKindFlag, uint32(count), n.size)
	for i := range n.members[:count] {
		m := &n.members[i]
		w.word(w.name(m.name))
		w.word(w.id(m.typ))
		w.word(m.width<<24 | m.off&0xffffff)
	}
}

func (w *btfWriter) function(f *Func) {
	count := min(len(f.params), maxCount)
	w.head("", ctype.BTFProto, uint32(count), w.id(f.ret))
	for _, p := range f.params[:count] {
		w.word(w.name(p.name))
		w.word(w.id(p.typ))
	}
	w.head(f.Name, ctype.BTFFunc, btfGlobal, w.next)
	w.next += 2
}

// bytes is the whole section.
func (w *btfWriter) bytes() []byte {
	le := binary.LittleEndian
	out := make([]byte, ctype.BTFHeaderLen, ctype.BTFHeaderLen+len(w.types)+len(w.strs))
	le.PutUint16(out, ctype.BTFMagic)
	out[2] = 1
	le.PutUint32(out[4:], ctype.BTFHeaderLen)
	le.PutUint32(out[12:], uint32(len(w.types)))
	le.PutUint32(out[16:], uint32(len(w.types)))
	le.PutUint32(out[20:], uint32(len(w.strs)))
	return append(append(out, w.types...), w.strs...)
}
