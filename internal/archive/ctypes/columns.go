package ctypes

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"
)

// The columns.
const (
	colOften = iota
	colOnce
	colKinds
	colSizes
	colElems
	colCounts
	colMembers
	colMemberTypes
	colParams
	colParamTypes
	colResults
	colOffsets
	colBits
	colKnown
	colFuncs
	colFirst
	numColumns
)

// Columns are the written form of a Table; more tables can follow in the same columns.
type Columns [numColumns][]byte

// ColumnNames name them.
var ColumnNames = [numColumns]string{
	"often", "once", "kinds", "sizes", "elems", "counts", "members", "member-types", "params", "param-types", "results", "offsets", "bits", "known", "funcs", "first",
}

func (c *Columns) uvarint(column int, v uint64) { c[column] = binary.AppendUvarint(c[column], v) }

func (c *Columns) varint(column int, v int64) { c[column] = binary.AppendVarint(c[column], v) }

func (c *Columns) text(column int, s string) { c[column] = append(append(c[column], s...), 0) }

// writer writes tables.
type writer struct {
	*Columns
	*Table
	// place has the places of names that are used often.
	place map[string]int
}

// Write appends the table. known are names that the reader will have, none twice;
// functions' names among them are not written again. If like is not nil and was written
// or read, names get the numbers that they have in like: the columns are then like its
// own, and longer than necessary.
func (t *Table) Write(c *Columns, known []string, like *Table) {
	t.typed = map[string]ref{}
	w := writer{Columns: c, Table: t}
	order := w.order()
	w.namesOf(order, like)
	c.uvarint(colKinds, uint64(len(order)))
	for _, i := range order {
		w.node(&t.nodes[i])
	}
	l := t.layout()
	for _, i := range order {
		w.places(l, i)
	}
	w.functions(known)
	if t.base == nil {
		c.uvarint(colFirst, uint64(len(t.first)))
		for _, r := range t.first {
			w.uvarint(colFirst, w.ref(r))
		}
	}
}

// order are the table's own nodes, those most used first.
func (w *writer) order() []int {
	before := w.inBase()
	uses := make([]int, len(w.nodes))
	w.eachRef(func(r ref) {
		if i := r.node() - 1 - before; i >= 0 {
			uses[i]++
		}
	})
	order := make([]int, len(w.nodes))
	for i := range order {
		order[i] = i
	}
	if !w.ordered {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(uses[b], uses[a]) })
		w.firstFirst(order)
	}
	w.to = make(map[int]int, len(order))
	for to, i := range order {
		w.to[i+1+before] = to + 1 + before
	}
	return order
}

// firstFirst puts structures of one name into the order that they have in BTF.
func (w *writer) firstFirst(order []int) {
	places := map[string][]int{}
	for at, i := range order {
		if n := &w.nodes[i]; n.kind == kindStruct && n.name != "" {
			places[n.name] = append(places[n.name], at)
		}
	}
	for _, at := range places {
		list := make([]int, len(at))
		for j := range at {
			list[j] = order[at[j]]
		}
		slices.SortFunc(list, func(a, b int) int { return cmp.Compare(w.nodes[a].id, w.nodes[b].id) })
		for j := range at {
			order[at[j]] = list[j]
		}
	}
}

// ref is a type as it is written.
func (w *writer) ref(r ref) uint64 {
	n := r.node()
	if to, ok := w.to[n]; ok {
		n = to
	} else if w.base != nil && n > 0 {
		n = w.base.to[n]
	}
	return uint64(refTo(n, r.pointers()))
}

// namesOf writes the names that are used often.
func (w *writer) namesOf(order []int, like *Table) {
	uses := map[string]int{}
	for _, i := range order {
		uses[w.nodes[i].name]++
		for _, m := range w.nodes[i].members {
			uses[m.name]++
		}
	}
	for i := range w.funcs {
		for _, p := range w.funcs[i].params {
			uses[p.name]++
		}
	}
	below := w.oftenBelow()
	w.place = make(map[string]int, len(below)+len(uses))
	for i, name := range below {
		w.place[name] = i + 1
	}
	list := []string{}
	if like != nil {
		list = slices.Clone(like.often)
		for i, name := range list {
			w.place[name] = len(below) + i + 1
		}
	}
	kept := len(list)
	for name, n := range uses {
		if _, there := w.place[name]; !there && (n > 1 || name == "") {
			list = append(list, name)
		}
	}
	slices.SortFunc(list[kept:], func(a, b string) int { return cmp.Or(cmp.Compare(uses[b], uses[a]), strings.Compare(a, b)) })
	w.often = list
	w.uvarint(colCounts, uint64(len(list)))
	for i, name := range list {
		w.place[name] = len(below) + i + 1
		w.text(colOften, name)
	}
}

func (w *writer) name(column int, name string) {
	i := w.place[name]
	if w.uvarint(column, uint64(i)); i == 0 {
		w.text(colOnce, name)
	}
}

// typeOf writes the type of a member or parameter.
func (w *writer) typeOf(column int, name string, r ref) {
	if last, ok := w.lastOf(name); ok && last == r {
		w.uvarint(column, 0)
		return
	}
	w.typed[name] = r
	w.uvarint(column, w.ref(r)+1)
}

// lastOf is the type of the last member or parameter of a name.
func (t *Table) lastOf(name string) (ref, bool) {
	r, ok := t.typed[name]
	if !ok && t.base != nil {
		r, ok = t.base.typed[name]
	}
	return r, ok
}

// oftenBelow are the names that have a place in the kernel's table.
func (t *Table) oftenBelow() []string {
	if t.base == nil {
		return nil
	}
	return t.base.often
}

func (w *writer) node(n *node) {
	w.Columns[colKinds] = append(w.Columns[colKinds], byte(n.kind))
	switch n.kind {
	case kindUnsigned, kindSigned, kindEnum, kindFloat:
		w.uvarint(colSizes, uint64(n.size))
	case kindPointer:
		w.uvarint(colElems, w.ref(n.to))
	case kindArray:
		w.uvarint(colElems, w.ref(n.to))
		w.uvarint(colElems, uint64(n.size))
	case kindStruct, kindUnion:
		w.name(colMembers, n.name)
		w.uvarint(colCounts, uint64(len(n.members)))
		for i := range n.members {
			w.name(colMembers, n.members[i].name)
			w.typeOf(colMemberTypes, n.members[i].name, n.members[i].typ)
		}
	}
}

// places writes the offsets of a structure's members, and its size.
func (w *writer) places(l *layout, i int) {
	n := &w.nodes[i]
	if n.kind != kindStruct && n.kind != kindUnion {
		return
	}
	end := uint32(0)
	for j := range n.members {
		m := &n.members[j]
		w.uvarint(colBits, uint64(m.width))
		w.varint(colOffsets, int64(m.off)-int64(l.place(n, m, end)))
		end = l.after(m)
	}
	w.varint(colSizes, int64(n.size)-int64(l.whole(refTo(w.inBase()+1+i, 0), n)))
}

func (w *writer) functions(known []string) {
	byName := make(map[string]int, len(w.funcs))
	for i := range w.funcs {
		byName[w.funcs[i].Name] = i
	}
	var written []int
	one := func(i int) {
		f := &w.funcs[i]
		w.uvarint(colCounts, uint64(len(f.params)))
		for _, p := range f.params {
			w.name(colParams, p.name)
			w.typeOf(colParamTypes, p.name, p.typ)
		}
		w.uvarint(colResults, w.ref(f.ret))
	}
	for _, name := range known {
		i, is := byName[name]
		if is {
			delete(byName, name)
			w.Columns[colKnown] = append(w.Columns[colKnown], 1)
			one(i)
			written = append(written, i)
		} else {
			w.Columns[colKnown] = append(w.Columns[colKnown], 0)
		}
	}
	w.uvarint(colCounts, uint64(len(byName)))
	for i := range w.funcs {
		if _, left := byName[w.funcs[i].Name]; left {
			w.text(colOnce, w.funcs[i].Name)
			one(i)
			written = append(written, i)
		}
	}
	w.numbers(written)
}

// numbers writes the functions' numbers in BTF: in the order in which the functions are
// written, or in the order of their names, if pahole has sorted them so.
func (w *writer) numbers(written []int) {
	byName := slices.Clone(written)
	slices.SortFunc(byName, func(a, b int) int { return strings.Compare(w.funcs[a].Name, w.funcs[b].Name) })
	var best []byte
	for sorted, order := range [][]int{written, byName} {
		b := []byte{byte(sorted)}
		last := 0
		for _, i := range order {
			b = binary.AppendVarint(b, int64(w.funcs[i].ID-last))
			last = w.funcs[i].ID
		}
		if sorted == 0 || len(b) < len(best) {
			best = b
		}
	}
	w.Columns[colFuncs] = append(w.Columns[colFuncs], best...)
}
