// Package btfnames finds the types of BTF by their names, as the kernel has them.
//
// It must not know what the types are for.
package btfnames

import (
	"strings"
	"sync"

	"github.com/cilium/ebpf/btf"
)

// flavour is the beginning of a suffix that libraries do not count as part of a type's name. Their
// index lists such a type by the text before the flavour, the first or the last of several. The
// kernel has names that begin with it (___sys_sendmsg), and takes all names as they are.
const flavour = "___"

// Index finds the types of one Spec. The zero Index is ready for use; it is safe for concurrent use.
type Index struct {
	once sync.Once
	// flavoured are the types whose names have a flavour in them, by their names.
	flavoured map[string][]btf.Type
}

// Types are the types of exactly that name in the index's Spec, in the order of their numbers.
func (x *Index) Types(spec *btf.Spec, name string) (list []btf.Type) {
	if strings.Contains(name, flavour) {
		x.once.Do(func() { x.read(spec) })
		return x.flavoured[name]
	}
	types, err := spec.AnyTypesByName(name)
	if err != nil {
		return nil
	}
	for _, found := range types {
		if found.TypeName() == name {
			list = append(list, found)
		}
	}
	return list
}

func (x *Index) read(spec *btf.Spec) {
	x.flavoured = map[string][]btf.Type{}
	for found, err := range spec.All() {
		if err != nil {
			return
		}
		if name := found.TypeName(); strings.Contains(name, flavour) {
			x.flavoured[name] = append(x.flavoured[name], found)
		}
	}
}

// First is the first type of a kind in a list.
func First[T btf.Type](list []btf.Type) (t T, ok bool) {
	for _, one := range list {
		if t, ok := one.(T); ok {
			return t, true
		}
	}
	return t, false
}
