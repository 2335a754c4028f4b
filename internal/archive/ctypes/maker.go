package ctypes

import (
	"bytes"

	"github.com/cilium/ebpf/btf"
)

// Maker makes tables of a kernel's BTF and of its modules'.
type Maker struct {
	kernel *Table
	spec   *btf.Spec
	// refs are the types that were met, alike the nodes by what they are.
	refs  map[btf.Type]ref
	alike map[node1]ref
	// into is the table that grows, of own.
	into *Table
	own  *btf.Spec
	// under is the kernel's Maker, nil for itself.
	under *Maker
}

// node1 is what makes a node without members equal to another.
type node1 struct {
	kind kind
	size uint32
	to   ref
}

// NewMaker reads a kernel's BTF.
func NewMaker(raw []byte) (*Maker, error) {
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	m := &Maker{spec: spec, refs: map[btf.Type]ref{}, alike: map[node1]ref{}}
	m.kernel, err = m.table(spec, nil)
	return m, err
}

// Kernel is the kernel's table.
func (m *Maker) Kernel() *Table { return m.kernel }

// Module reads a module's BTF, which builds on the kernel's.
func (m *Maker) Module(raw []byte) (*Table, error) {
	spec, err := btf.LoadSplitSpecFromReader(bytes.NewReader(raw), m.spec)
	if err != nil {
		return nil, err
	}
	own := &Maker{under: m, refs: map[btf.Type]ref{}, alike: map[node1]ref{}}
	return own.table(spec, m.kernel)
}

func (m *Maker) table(spec *btf.Spec, base *Table) (*Table, error) {
	m.into, m.own = &Table{base: base}, spec
	seen := map[string]bool{}
	for t, err := range spec.All() {
		if err != nil {
			return nil, err
		}
		id, err := spec.TypeID(t)
		if err != nil {
			return nil, err
		}
		if base == nil && id >= 1 && int(id) == len(m.into.first)+1 && id <= firstIDs {
			m.into.first = append(m.into.first, m.ref(t))
		}
		switch t := t.(type) {
		case *btf.Struct, *btf.Union:
			m.ref(t)
		case *btf.Func:
			// Of functions with one name the first one counts.
			if p, ok := t.Type.(*btf.FuncProto); ok && !seen[t.Name] && t.Name != "" {
				seen[t.Name] = true
				m.into.funcs = append(m.into.funcs, m.function(t.Name, int(id), p))
			}
		}
	}
	return m.into, nil
}

func (m *Maker) function(name string, id int, p *btf.FuncProto) Func {
	f := Func{Name: name, ID: id, ret: m.ref(p.Return)}
	for _, a := range p.Params {
		f.params = append(f.params, param{a.Name, m.ref(a.Type)})
	}
	return f
}

// ref is a type in the table.
func (m *Maker) ref(t btf.Type) ref {
	t = btf.UnderlyingType(t)
	if _, void := t.(*btf.Void); void || t == nil {
		return 0
	}
	if r, ok := m.met(t); ok {
		return r
	}
	switch u := t.(type) {
	case *btf.Pointer:
		// A pointer leads to itself by way of a structure only, which has its
		// number before its members are looked at.
		to := m.ref(u.Target)
		if to.pointers() == maxPointers {
			to = m.node(node{kind: kindPointer, to: to})
		} else {
			to++
		}
		m.refs[t] = to
		return to
	case *btf.Struct:
		return m.composite(t, node{kind: kindStruct, size: u.Size, name: u.Name}, u.Members)
	case *btf.Union:
		return m.composite(t, node{kind: kindUnion, size: u.Size, name: u.Name}, u.Members)
	}
	r := m.node(m.plain(t))
	m.refs[t] = r
	return r
}

func (m *Maker) met(t btf.Type) (ref, bool) {
	r, ok := m.refs[t]
	if !ok && m.under != nil {
		r, ok = m.under.refs[t]
	}
	return r, ok
}

func (m *Maker) plain(t btf.Type) node {
	switch u := t.(type) {
	case *btf.Int:
		switch {
		case u.Encoding != btf.Signed:
			return node{kind: kindUnsigned, size: u.Size}
		case u.Size == 1 && u.Name == "char":
			return node{kind: kindChar, size: 1}
		}
		return node{kind: kindSigned, size: u.Size}
	case *btf.Enum:
		return node{kind: kindEnum, size: u.Size}
	case *btf.Float:
		return node{kind: kindFloat, size: u.Size}
	case *btf.Array:
		return node{kind: kindArray, size: u.Nelems, to: m.ref(u.Type)}
	}
	return node{kind: kindOther}
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

func (m *Maker) composite(t btf.Type, n node, members []btf.Member) ref {
	if id, err := m.own.TypeID(t); err == nil {
		n.id = int(id)
	}
	r := m.add(n)
	m.refs[t] = r
	at := len(m.into.nodes) - 1
	list := make([]member, len(members))
	for i, b := range members {
		list[i] = member{b.Name, m.ref(b.Type), uint32(b.Offset), uint32(b.BitfieldSize)}
	}
	m.into.nodes[at].members = list
	return r
}
