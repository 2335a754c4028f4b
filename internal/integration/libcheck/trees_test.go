package libcheck

// rbTree is a red-black tree as in textbooks (Cormen et al., chapter 13), with nodes numbered from
// 0; -1 is no node. Its rotations give the same tree as the kernel's.
type rbTree struct {
	root                int
	parent, left, right []int
	red                 []bool
}

func (t *rbTree) add(key func(i int) int) int {
	i := len(t.parent)
	t.parent = append(t.parent, -1)
	t.left = append(t.left, -1)
	t.right = append(t.right, -1)
	t.red = append(t.red, true)
	link := &t.root
	for *link >= 0 {
		t.parent[i] = *link
		if key(i) < key(*link) {
			link = &t.left[*link]
		} else {
			link = &t.right[*link]
		}
	}
	*link = i
	return i
}

func (t *rbTree) child(i int, right bool) *int {
	if right {
		return &t.right[i]
	}
	return &t.left[i]
}

func (t *rbTree) rotate(i int, right bool) {
	up := *t.child(i, !right)
	inner := t.child(up, right)
	*t.child(i, !right) = *inner
	if *inner >= 0 {
		t.parent[*inner] = i
	}
	p := t.parent[i]
	t.parent[up] = p
	switch {
	case p < 0:
		t.root = up
	case t.left[p] == i:
		t.left[p] = up
	default:
		t.right[p] = up
	}
	*t.child(up, right) = i
	t.parent[i] = up
}

func (t *rbTree) isRed(i int) bool { return i >= 0 && t.red[i] }

// balance restores the colours after node i was added.
func (t *rbTree) balance(i int) {
	for t.isRed(t.parent[i]) {
		p := t.parent[i]
		g := t.parent[p]
		right := t.right[g] == p
		uncle := *t.child(g, !right)
		if t.isRed(uncle) {
			t.red[p], t.red[uncle], t.red[g] = false, false, true
			i = g
			continue
		}
		if *t.child(p, !right) == i {
			t.rotate(p, right)
			i, p = p, i
		}
		t.red[p], t.red[g] = false, true
		t.rotate(g, !right)
	}
	t.red[t.root] = false
}

// nodeSize is struct rb_node: parent and colour, right, left.
const nodeSize = 24

// layout is the tree as guest memory: buffer 0 the nodes, buffer 1 the root.
// The colour is bit 0 of the parent word, set for black.
func (t *rbTree) layout() (content []byte, ptrs []Ptr, root []Ptr) {
	content = make([]byte, nodeSize*len(t.parent))
	for i := range t.parent {
		base := nodeSize * i
		parent := t.ref(t.parent[i])
		if !t.red[i] {
			parent.Off++
			if parent.Buf < 0 {
				content[base], parent = 1, Ref{Buf: -2}
			}
		}
		if parent.Buf > -2 {
			ptrs = append(ptrs, Ptr{base, parent})
		}
		ptrs = append(ptrs, Ptr{base + 8, t.ref(t.right[i])}, Ptr{base + 16, t.ref(t.left[i])})
	}
	return content, ptrs, []Ptr{{0, t.ref(t.root)}}
}

func (t *rbTree) ref(i int) Ref {
	if i < 0 {
		return Null
	}
	return Ref{0, nodeSize * i}
}

// inOrder lists the nodes in the order of their keys.
func (t *rbTree) inOrder(i int) []int {
	if i < 0 {
		return nil
	}
	return append(append(t.inOrder(t.left[i]), i), t.inOrder(t.right[i])...)
}

func (t *rbTree) postOrder(i int) []int {
	if i < 0 {
		return nil
	}
	return append(append(t.postOrder(t.left[i]), t.postOrder(t.right[i])...), i)
}

// tree makes a random tree of one to twenty nodes.
func (g *Gen) tree() *rbTree {
	t := &rbTree{root: -1}
	keys := g.Perm(1 + g.IntN(20))
	for range keys {
		t.balance(t.add(func(i int) int { return keys[i] }))
	}
	return t
}

func (t *rbTree) bufs() []Buf {
	content, ptrs, root := t.layout()
	return []Buf{{In: content, Ptrs: ptrs}, {In: make([]byte, 8), Ptrs: root}}
}

// treeFuncs are lib/rbtree.c.
var treeFuncs = []Func{
	{"rb_insert_color", func(g *Gen) Call {
		keys := g.Perm(2 + g.IntN(20))
		t := &rbTree{root: -1}
		for range keys[1:] {
			t.balance(t.add(func(i int) int { return keys[i] }))
		}
		last := t.add(func(i int) int { return keys[i] })
		bufs := t.bufs()
		t.balance(last)
		after := t.bufs()
		for i := range bufs {
			bufs[i].Out, bufs[i].OutPtrs = after[i].In, after[i].Ptrs
		}
		return call(t.ref(last), at(1)).with(bufs...)
	}},
	treeEnd("rb_first", 0), treeEnd("rb_last", -1),
	treeStep("rb_next", 1), treeStep("rb_prev", -1),
	{"rb_first_postorder", func(g *Gen) Call {
		t := g.tree()
		return call(at(1)).with(t.bufs()...).gives(Pointer(0, nodeSize*t.postOrder(t.root)[0]))
	}},
	{"rb_next_postorder", func(g *Gen) Call {
		t := g.tree()
		return t.step(g, t.postOrder(t.root), 1)
	}},
}

func treeEnd(name string, end int) Func {
	return Func{name, func(g *Gen) Call {
		t := g.tree()
		order := t.inOrder(t.root)
		return call(at(1)).with(t.bufs()...).gives(Pointer(0, nodeSize*order[(end+len(order))%len(order)]))
	}}
}

func treeStep(name string, by int) Func {
	return Func{name, func(g *Gen) Call {
		t := g.tree()
		return t.step(g, t.inOrder(t.root), by)
	}}
}

// step makes a call that returns the neighbour of a node in an order.
func (t *rbTree) step(g *Gen, order []int, by int) Call {
	i := g.IntN(len(order))
	want := NullPointer()
	if to := i + by; to >= 0 && to < len(order) {
		want = Pointer(0, nodeSize*order[to])
	}
	return call(t.ref(order[i])).with(t.bufs()...).gives(want)
}
