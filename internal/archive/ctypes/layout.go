package ctypes

// layout guesses the places of members as compilers choose them, so that a column has
// only the differences.
type layout struct {
	*Table
	// aligns are the alignments of the table's own nodes in bytes; 0 is not known yet.
	// busy marks nodes whose alignment is being computed.
	aligns []uint32
	busy   []bool
}

// layout is the table's, made once its nodes are there.
func (t *Table) layout() *layout {
	if t.lay == nil {
		t.lay = &layout{Table: t, aligns: make([]uint32, len(t.nodes)), busy: make([]bool, len(t.nodes))}
	}
	return t.lay
}

// size is a type's in bytes.
func (l *layout) size(r ref) uint64 {
	if r.pointers() > 0 {
		return 8
	}
	if r == 0 {
		return 0
	}
	n := l.at(r.node())
	switch n.kind {
	case kindPointer:
		return 8
	case kindArray:
		return l.elements(r)
	}
	return uint64(n.size)
}

// elements is the size of an array, of arrays too.
func (l *layout) elements(r ref) uint64 {
	size := uint64(1)
	for range 16 {
		n := l.at(r.node())
		size *= uint64(n.size)
		if size > 1<<40 {
			return 0
		}
		if r = n.to; r == 0 || r.pointers() > 0 || l.at(r.node()).kind != kindArray {
			return size * l.size(r)
		}
	}
	return 0
}

// align is a type's alignment in bytes.
func (l *layout) align(r ref) uint32 {
	if r.pointers() > 0 {
		return 8
	}
	if r == 0 {
		return 1
	}
	i := r.node() - 1 - l.inBase()
	if i < 0 {
		return l.base.layout().align(r)
	}
	n := &l.nodes[i]
	if l.aligns[i] > 0 || l.busy[i] {
		return max(1, l.aligns[i])
	}
	l.busy[i] = true
	a := uint32(1)
	switch n.kind {
	case kindPointer:
		a = 8
	case kindArray:
		a = l.align(n.to)
	case kindStruct, kindUnion:
		for _, m := range n.members {
			a = max(a, l.align(m.typ))
		}
	case kindUnsigned, kindSigned, kindChar, kindEnum, kindFloat:
		if n.size&(n.size-1) == 0 {
			a = max(1, n.size)
		}
	}
	l.busy[i] = false
	l.aligns[i] = a
	return a
}

// place guesses the offset of a member, in bits; end is the end of the member before it.
func (l *layout) place(n *node, m *member, end uint32) uint32 {
	if n.kind == kindUnion {
		return 0
	}
	if m.width > 0 {
		return end
	}
	return alignUp(end, 8*l.align(m.typ))
}

// after returns the offset of a member's end, in bits.
func (l *layout) after(m *member) uint32 {
	if m.width > 0 {
		return m.off + m.width
	}
	return m.off + uint32(8*l.size(m.typ))
}

// whole guesses the size of a structure, in bytes.
func (l *layout) whole(r ref, n *node) uint32 {
	end := uint32(0)
	for i := range n.members {
		end = max(end, l.after(&n.members[i]))
	}
	return alignUp(alignUp(end, 8)/8, l.align(r))
}

func alignUp(v, a uint32) uint32 { return (v + a - 1) / a * a }
