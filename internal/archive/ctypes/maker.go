package ctypes

import (
	"kprobelab/internal/bounded"
	"kprobelab/internal/ctype"
)

// Maker makes tables of a kernel's BTF and of its modules'.
type Maker struct {
	kernel *Table
	btf    *ctype.BTF
	// refs maps the types that were read to their references; alike maps the content of nodes to
	// theirs.
	refs  map[*ctype.Type]ref
	alike map[node1]ref
	// into is the table that grows; todo are the structures that have no members yet, the next one last.
	into *Table
	todo []composite
	// under is the kernel's Maker, nil in the kernel's own.
	under *Maker
}

// composite is a structure or a union whose members are not in the table yet.
type composite struct {
	at   int
	list []ctype.Member
	done int
}

// node1 is the content of a node without members: nodes with equal content are one.
type node1 struct {
	kind kind
	size uint32
	to   ref
}

// NewMaker reads a kernel's BTF.
func NewMaker(raw []byte) (*Maker, error) {
	b, err := ctype.ReadBTF(raw, nil)
	if err != nil {
		return nil, err
	}
	m := &Maker{btf: b, refs: map[*ctype.Type]ref{}, alike: map[node1]ref{}}
	m.kernel = m.table(b, nil)
	return m, nil
}

// Kernel returns the kernel's table.
func (m *Maker) Kernel() *Table { return m.kernel }

// Module reads a module's BTF, which builds on the kernel's.
func (m *Maker) Module(raw []byte) (*Table, error) {
	b, err := ctype.ReadBTF(raw, m.btf)
	if err != nil {
		return nil, err
	}
	own := &Maker{under: m, refs: map[*ctype.Type]ref{}, alike: map[node1]ref{}}
	return own.table(b, m.kernel), nil
}

func (m *Maker) table(b *ctype.BTF, base *Table) *Table {
	m.into = &Table{base: base}
	seen := map[string]bool{}
	for e := range b.Entries() {
		if base == nil && e.ID == len(m.into.first)+1 && e.ID <= firstIDs {
			m.into.first = append(m.into.first, m.whole(e.Type))
		}
		switch {
		case e.Func.Proto == nil:
			if r := e.Type; r.Composite() && !r.Incomplete {
				m.whole(r)
			}
		case !seen[e.Func.Name] && e.Func.Name != "":
			// Of functions with one name the first one counts.
			seen[e.Func.Name] = true
			m.into.funcs = append(m.into.funcs, m.function(e.Func))
		}
	}
	return m.into
}

func (m *Maker) function(of ctype.Func) Func {
	f := Func{Name: of.Name, ID: of.ID, ret: m.whole(of.Proto.Target())}
	for _, a := range of.Proto.Params() {
		f.params = append(f.params, param{a.Name, m.whole(a.Type)})
	}
	if of.Proto.Variadic {
		f.params = append(f.params, param{})
	}
	return f
}

// whole is a type in the table, with all that it leads to. Structures may lead to each other without end, so their members
// are no recursion: members of a new one come before the next member of the one that led to it.
func (m *Maker) whole(t *ctype.Type) ref {
	r := m.ref(t, 0)
	for n := len(m.todo); n > 0; n = len(m.todo) {
		c := &m.todo[n-1]
		if c.done == len(c.list) {
			m.todo = m.todo[:n-1]
			continue
		}
		b := c.list[c.done]
		c.done++
		list, i := m.into.nodes[c.at].members, c.done-1
		list[i] = member{b.Name, m.ref(b.Type, 0), uint32(8*b.Offset) + uint32(b.Bit), uint32(b.Bits)}
	}
	return r
}

// ref is a type in the table. What is nested deeper than bounded.TypeDepth is another kind of thing.
func (m *Maker) ref(t *ctype.Type, depth int) ref {
	t = t.Real()
	if t.Kind == ctype.Void {
		return 0
	}
	if r, ok := m.met(t); ok {
		return r
	}
	if depth >= bounded.TypeDepth {
		return m.node(node{kind: kindOther})
	}
	var r ref
	switch {
	case t.Kind == ctype.Pointer:
		if r = m.ref(t.Target(), depth+1); r.pointers() == maxPointers {
			r = m.node(node{kind: kindPointer, to: r})
		} else {
			r++
		}
	case t.Composite() && !t.Incomplete:
		return m.composite(t)
	default:
		r = m.node(m.plain(t, depth))
	}
	m.refs[t] = r
	return r
}

func (m *Maker) met(t *ctype.Type) (ref, bool) {
	r, ok := m.refs[t]
	if !ok && m.under != nil {
		r, ok = m.under.refs[t]
	}
	return r, ok
}

func (m *Maker) plain(t *ctype.Type, depth int) node {
	size := uint32(t.Bytes)
	switch {
	case t.Kind == ctype.Enum:
		return node{kind: kindEnum, size: size}
	case t.Kind == ctype.Array:
		return node{kind: kindArray, size: uint32(t.Count), to: m.ref(t.Target(), depth+1)}
	case t.Kind != ctype.Base:
		return node{kind: kindOther}
	case t.Float:
		return node{kind: kindFloat, size: size}
	case !t.Signed:
		return node{kind: kindUnsigned, size: size}
	case size == 1 && t.Name == "char":
		return node{kind: kindChar, size: 1}
	}
	return node{kind: kindSigned, size: size}
}

// node is the number of a node that is like this one.
func (m *Maker) node(n node) ref {
	like := node1{n.kind, n.size, n.to}
	if m.under != nil {
		if r, ok := m.under.alike[like]; ok {
			return r
		}
	}
	if r, ok := m.alike[like]; ok {
		return r
	}
	r := m.add(n)
	m.alike[like] = r
	return r
}

func (m *Maker) add(n node) ref {
	m.into.nodes = append(m.into.nodes, n)
	return refTo(m.into.end()-1, 0)
}

func (m *Maker) composite(t *ctype.Type) ref {
	n := node{kind: kindStruct, size: uint32(t.Bytes), name: t.Name, id: t.ID}
	if t.Kind == ctype.Union {
		n.kind = kindUnion
	}
	list := t.Members()
	n.members = make([]member, len(list))
	r := m.add(n)
	m.refs[t] = r
	m.todo = append(m.todo, composite{at: len(m.into.nodes) - 1, list: list})
	return r
}
