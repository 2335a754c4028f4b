package kimage

import (
	"strings"
	"sync"

	"github.com/cilium/ebpf/btf"
)

// flavour is the beginning of a suffix that libraries do not count as part of a type's name. Their
// index lists such a type by the text before the flavour, the first or the last of several. The
// kernel has names that begin with it (___sys_sendmsg), and takes all names as they are.
const flavour = "___"

// flavoured are the types of a Spec whose names have a flavour in them, by their names.
type flavoured struct {
	once  sync.Once
	types map[string][]btf.Type
}

// named are the types of exactly that name in the i-th Spec, in the order of their numbers.
func (t *Types) named(i int, name string) (list []btf.Type) {
	spec := t.specs[i]
	if strings.Contains(name, flavour) {
		return t.flavoured[i].of(spec)[name]
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

func (f *flavoured) of(spec *btf.Spec) map[string][]btf.Type {
	f.once.Do(func() {
		f.types = map[string][]btf.Type{}
		for found, err := range spec.All() {
			if err != nil {
				return
			}
			if name := found.TypeName(); strings.Contains(name, flavour) {
				f.types[name] = append(f.types[name], found)
			}
		}
	})
	return f.types
}
