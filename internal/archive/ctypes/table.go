package ctypes

import "errors"

// ErrFormat is columns that cannot be read.
var ErrFormat = errors.New("types that cannot be read")

// kind is the kind of a type.
type kind byte

const (
	kindOther kind = iota // incomplete, or a function
	kindUnsigned
	kindSigned
	kindChar // a signed byte with that name
	kindEnum
	kindFloat
	kindPointer // to what four pointers or more lead to
	kindArray
	kindStruct
	kindUnion
	numKinds
)

// ref is a type: up to maxPointers pointers, and the number of the node that they lead to,
// from 1; 0 is void.
type ref uint32

const maxPointers = 3

func refTo(node, pointers int) ref { return ref(node<<2 | pointers) }

func (r ref) node() int     { return int(r >> 2) }
func (r ref) pointers() int { return int(r & maxPointers) }

// node is a type that is no pointer, or one to a ref with maxPointers.
type node struct {
	kind kind
	// size in bytes; of an array, the number of its elements.
	size    uint32
	name    string
	to      ref
	members []member
	// id is a structure's number in BTF: of several with one name the first is meant.
	id int
}

type member struct {
	name string
	typ  ref
	// off is in bits; width is a bitfield's, 0 for another member.
	off, width uint32
}

// Func is a function that BTF knows.
type Func struct {
	Name string
	// ID is its number in BTF.
	ID int
	// last is void without a name if the function is variadic.
	params []param
	ret    ref
}

type param struct {
	name string
	typ  ref
}

// firstIDs is the number of BTF's first types that keep their numbers: kernels take a
// number for one of them (package definition, TypeByID).
const firstIDs = 16

// Table is the types of a kernel, or of a module.
type Table struct {
	// base is the kernel's table under a module's; its nodes come first.
	base  *Table
	nodes []node
	funcs []Func
	// first are BTF's types 1 to firstIDs.
	first []ref
	// names maps a name to the index of its function.
	names map[string]int
	// ordered: the nodes are in the order in which they are written, for the table was read.
	ordered bool
	// often, typed and to are left by writing or reading the table, for modules'
	// tables: the names that have a number, the type of the last member of a name, and
	// the written numbers of nodes.
	often []string
	typed map[string]ref
	to    map[int]int
	lay   *layout
}

// OnlyFunctions is a table with the functions and their numbers alone.
func (t *Table) OnlyFunctions() *Table {
	out := &Table{base: t.base}
	for i := range t.funcs {
		out.funcs = append(out.funcs, Func{Name: t.funcs[i].Name, ID: t.funcs[i].ID})
	}
	return out
}

// inBase returns the number of the kernel's nodes under a module's table.
func (t *Table) inBase() int {
	if t.base == nil {
		return 0
	}
	return len(t.base.nodes)
}

// at returns a node by its number, counted from 1.
func (t *Table) at(n int) *node {
	if in := t.inBase(); n > in {
		return &t.nodes[n-1-in]
	}
	return &t.base.nodes[n-1]
}

// end is the number after the last node's.
func (t *Table) end() int { return t.inBase() + len(t.nodes) + 1 }

// FuncID is the number of a function in BTF, and whether it is known there.
func (t *Table) FuncID(name string) (int, bool) {
	if t.names == nil {
		t.names = make(map[string]int, len(t.funcs))
		for i := range t.funcs {
			t.names[t.funcs[i].Name] = i
		}
	}
	i, ok := t.names[name]
	if !ok {
		return 0, false
	}
	return t.funcs[i].ID, true
}

// eachRef calls f with each type that the table's own nodes and functions name.
func (t *Table) eachRef(f func(ref)) {
	for i := range t.nodes {
		f(t.nodes[i].to)
		for _, m := range t.nodes[i].members {
			f(m.typ)
		}
	}
	for i := range t.funcs {
		f(t.funcs[i].ret)
		for _, p := range t.funcs[i].params {
			f(p.typ)
		}
	}
}
