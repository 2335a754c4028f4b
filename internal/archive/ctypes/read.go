package ctypes

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
)

// reader reads what writer has written.
type reader struct {
	Columns
	*Table
	// deltas are the differences of offsets and sizes from the guessed ones, by node.
	deltas []delta
	err    error
}

type delta struct {
	members []int64
	size    int64
	state   byte // of the node's layout: not begun, begun, done
}

// Read takes the next table off the columns. For a module's table base is the kernel's;
// known are the names that Write had.
func Read(c *Columns, base *Table, known []string) (*Table, error) {
	r := reader{Columns: *c, Table: &Table{base: base, ordered: true, typed: map[string]ref{}}}
	r.names()
	r.read(known)
	if r.err != nil {
		return nil, r.err
	}
	*c = r.Columns
	return r.Table, nil
}

func (r *reader) fail(what string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", ErrFormat, what)
	}
}

func (r *reader) uvarint(column int) uint64 {
	v, n := binary.Uvarint(r.Columns[column])
	if n <= 0 {
		r.fail("the column " + ColumnNames[column] + " ends early")
		return 0
	}
	r.Columns[column] = r.Columns[column][n:]
	return v
}

func (r *reader) varint(column int) int64 {
	v, n := binary.Varint(r.Columns[column])
	if n <= 0 {
		r.fail("the column " + ColumnNames[column] + " ends early")
		return 0
	}
	r.Columns[column] = r.Columns[column][n:]
	return v
}

// count reads how many things follow, each of which has a byte at least in another
// column.
func (r *reader) count(column, of int) int {
	n := r.uvarint(column)
	if n > uint64(len(r.Columns[of])) {
		r.fail("more is counted than the column " + ColumnNames[of] + " has")
		return 0
	}
	return int(n)
}

func (r *reader) byte(column int) byte {
	if len(r.Columns[column]) == 0 {
		r.fail("the column " + ColumnNames[column] + " ends early")
		return 0
	}
	b := r.Columns[column][0]
	r.Columns[column] = r.Columns[column][1:]
	return b
}

func (r *reader) text(column int) string {
	i := bytes.IndexByte(r.Columns[column], 0)
	if i < 0 {
		r.fail("the column " + ColumnNames[column] + " ends early")
		return ""
	}
	s := string(r.Columns[column][:i])
	r.Columns[column] = r.Columns[column][i+1:]
	return s
}

func (r *reader) name(column int) string {
	i := r.uvarint(column)
	switch {
	case i == 0:
		return r.text(colOnce)
	case i <= uint64(len(r.oftenBelow())):
		return r.oftenBelow()[i-1]
	case i-uint64(len(r.oftenBelow())) <= uint64(len(r.often)):
		return r.often[i-1-uint64(len(r.oftenBelow()))]
	}
	r.fail("a name that is not there")
	return ""
}

// ref reads a type. Own nodes are numbered as they are read.
func (r *reader) ref(column int) ref { return r.refOf(r.uvarint(column)) }

func (r *reader) refOf(v uint64) ref {
	if v>>2 >= uint64(r.end()) {
		r.fail("a type that is not there")
		return 0
	}
	return ref(v)
}

func (r *reader) typeOf(column int, name string) ref {
	v := r.uvarint(column)
	if v == 0 {
		t, _ := r.lastOf(name)
		return t
	}
	t := r.refOf(v - 1)
	r.typed[name] = t
	return t
}

func (r *reader) names() {
	n := r.count(colCounts, colOften)
	r.often = make([]string, 0, n)
	for len(r.often) < n && r.err == nil {
		r.often = append(r.often, r.text(colOften))
	}
}

func (r *reader) read(known []string) {
	r.nodes = make([]node, r.count(colKinds, colKinds))
	for i := range r.nodes {
		r.node(&r.nodes[i])
		if r.err != nil {
			return
		}
	}
	r.places()
	r.functions(known)
	if r.err != nil || r.base != nil {
		return
	}
	n := r.count(colFirst, colFirst)
	if n > firstIDs {
		r.fail("too many first types")
		return
	}
	for range n {
		r.first = append(r.first, r.ref(colFirst))
	}
}

// maxSize bounds a number's size in bytes.
const maxSize = 64

func (r *reader) node(n *node) {
	n.kind = kind(r.byte(colKinds))
	switch n.kind {
	case kindOther:
	case kindChar:
		n.size = 1
	case kindUnsigned, kindSigned, kindEnum, kindFloat:
		size := r.uvarint(colSizes)
		if size > maxSize {
			r.fail("a number of many bytes")
		}
		n.size = uint32(size)
	case kindPointer:
		n.to = r.ref(colElems)
	case kindArray:
		n.to = r.ref(colElems)
		n.size = uint32(r.uvarint(colElems))
	case kindStruct, kindUnion:
		n.name = r.name(colMembers)
		n.members = make([]member, r.count(colCounts, colMembers))
		for i := range n.members {
			name := r.name(colMembers)
			n.members[i] = member{name: name, typ: r.typeOf(colMemberTypes, name)}
		}
	default:
		r.fail("a type of an unknown kind")
	}
}

// places reads where members are. A place depends on the sizes of the members
// before, so all that is written is read first.
func (r *reader) places() {
	r.deltas = make([]delta, len(r.nodes))
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.kind != kindStruct && n.kind != kindUnion {
			continue
		}
		d := &r.deltas[i]
		d.members = make([]int64, len(n.members))
		for j := range n.members {
			n.members[j].width = uint32(r.uvarint(colBits))
			d.members[j] = r.varint(colOffsets)
		}
		d.size = r.varint(colSizes)
		if r.err != nil {
			return
		}
	}
	l := r.layout()
	for i := range r.nodes {
		r.layOut(l, i, 0)
	}
}

const (
	layoutBegun = 1 + iota
	layoutDone
)

// layOut places the members of a structure, after those in it.
func (r *reader) layOut(l *layout, i, depth int) {
	n, d := &r.nodes[i], &r.deltas[i]
	if n.kind != kindStruct && n.kind != kindUnion || d.state != 0 {
		return
	}
	if depth > bounded.ArchiveNesting {
		r.fail("structures lie too deep in each other")
		return
	}
	d.state = layoutBegun
	end := uint32(0)
	for j := range n.members {
		m := &n.members[j]
		if in, ok := r.inside(m.typ); ok {
			r.layOut(l, in, depth+1)
		}
		m.off = uint32(int64(l.place(n, m, end)) + d.members[j])
		end = l.after(m)
	}
	n.size = uint32(int64(l.whole(refTo(r.inBase()+1+i, 0), n)) + d.size)
	d.state = layoutDone
}

// inside is the own node that a member has within itself.
func (r *reader) inside(t ref) (int, bool) {
	for range 16 {
		if t == 0 || t.pointers() > 0 {
			return 0, false
		}
		n := r.at(t.node())
		if n.kind != kindArray {
			i := t.node() - 1 - r.inBase()
			return i, i >= 0
		}
		t = n.to
	}
	return 0, false
}

func (r *reader) functions(known []string) {
	if r.err != nil {
		return
	}
	if len(known) > len(r.Columns[colKnown]) {
		r.fail("the column known ends early")
		return
	}
	for _, name := range known {
		if r.byte(colKnown) != 0 {
			r.function(name)
		}
	}
	for range r.count(colCounts, colOnce) {
		r.function(r.text(colOnce))
	}
	r.numbers()
}

func (r *reader) function(name string) {
	if r.err != nil {
		return
	}
	f := Func{Name: name}
	f.params = make([]param, r.count(colCounts, colParams))
	for i := range f.params {
		name := r.name(colParams)
		f.params[i] = param{name, r.typeOf(colParamTypes, name)}
	}
	f.ret = r.ref(colResults)
	r.funcs = append(r.funcs, f)
}

func (r *reader) numbers() {
	order := make([]int, len(r.funcs))
	for i := range order {
		order[i] = i
	}
	if r.byte(colFuncs) != 0 {
		slices.SortFunc(order, func(a, b int) int { return strings.Compare(r.funcs[a].Name, r.funcs[b].Name) })
	}
	last := 0
	for _, i := range order {
		last += int(r.varint(colFuncs))
		r.funcs[i].ID = last
	}
}
