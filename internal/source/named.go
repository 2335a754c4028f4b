package source

import (
	"debug/dwarf"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"kprobelab/internal/btfnames"
)

// Named is a type by its name: a structure, a union, an enumeration, a typedef or a base type.
// Of several it is the first that is described whole.
func (f *File) Named(name string) (*Type, error) {
	return f.named(name, Struct, Union, Enum, Typedef, Base)
}

// Tagged is a structure, a union or an enumeration by its name, as kind says.
func (f *File) Tagged(kind Kind, name string) (*Type, error) { return f.named(name, kind) }

func (f *File) named(name string, kinds ...Kind) (t *Type, err error) {
	defer guard(&err)
	if f.fromBTF {
		for _, spec := range f.specs {
			for _, one := range spec.named(name) {
				switch one.(type) {
				case *btf.Struct, *btf.Union, *btf.Enum, *btf.Typedef, *btf.Int:
					if t := btfType(one); slices.Contains(kinds, t.Kind) {
						return t, nil
					}
				}
			}
		}
		return nil, notFound("no type %s is described", name)
	}
	f.left = maxRead
	for _, h := range f.mention(name) {
		u, err := f.unit(h)
		if err != nil {
			return nil, err
		}
		n := u.root.find(func(n *node) turn {
			if k, ok := tagKinds[n.Tag]; ok && slices.Contains(kinds, k) {
				if declared, _ := n.Val(dwarf.AttrDeclaration).(bool); !declared && n.name() == name {
					return stop
				}
			}
			return over
		})
		if n != nil {
			return n.asType(), nil
		}
	}
	return nil, notFound("no type %s is described", name)
}

// tagKinds are the kinds of types that have names.
var tagKinds = map[dwarf.Tag]Kind{
	dwarf.TagStructType: Struct, dwarf.TagUnionType: Union, dwarf.TagEnumerationType: Enum, dwarf.TagTypedef: Typedef, dwarf.TagBaseType: Base,
}

// Signature is what a typedef of a pointer to a function has as parameters.
func (t *Type) Signature() []Param {
	t = t.Real()
	if t.Kind == Pointer {
		t = t.Target().Real()
	}
	return t.Params()
}

// Returns is the type of what the place's function returns.
func (p *Place) Returns() *Type {
	if p.returns != nil {
		return p.returns
	}
	if p.fn == nil {
		return void
	}
	return p.scope.unit.typeOf(p.scope)
}

// PointerTo is a pointer to a type.
func PointerTo(t *Type) *Type {
	return &Type{Kind: Pointer, Size: word, target: func() *Type { return t }}
}

// Written is a type in C's words, as the kernel's tables of events have them: "const char *const *". One that is
// not described is an unsigned long, or what a pointer points to is void.
func (f *File) Written(text string) *Type {
	if t := basic(text); t != nil {
		return t
	}
	var base []string
	for _, w := range strings.Fields(strings.ReplaceAll(text, "*", " ")) {
		switch w {
		case "const", "volatile", "struct", "union", "enum":
		default:
			base = append(base, w)
		}
	}
	stars := strings.Count(text, "*")
	t, err := f.Named(strings.Join(base, " "))
	switch {
	case err == nil:
	case stars > 0:
		t = void
	default:
		if t, err = f.Named("unsigned long"); err != nil {
			t = &Type{Kind: Base, Size: word}
		}
	}
	for range stars {
		t = PointerTo(t)
	}
	return t
}

// GlobalType is the type of a global variable.
func (f *File) GlobalType(name string) (t *Type, err error) {
	defer guard(&err)
	if f.fromBTF {
		for _, spec := range f.specs {
			if v, ok := btfnames.First[*btf.Var](spec.named(name)); ok {
				return btfType(v.Type), nil
			}
		}
		return nil, notFound("the type of the variable %s is not described", name)
	}
	f.left = maxRead
	for _, h := range f.mention(name) {
		u, err := f.unit(h)
		if err != nil {
			return nil, err
		}
		if n := u.root.find(func(n *node) turn {
			if n.Tag == dwarf.TagVariable && n.name() == name && hasPlace(n) {
				return stop
			}
			return over
		}); n != nil {
			return u.typeOf(n), nil
		}
	}
	return nil, notFound("the type of the variable %s is not described", name)
}

// Enumerator is the value of a name of an enumeration of BTF, with the enumeration.
func (f *File) Enumerator(name string) (value int64, enum *Type, ok bool) {
	f.enumsOnce.Do(func() {
		f.enums = map[string]enumerator{}
		for _, spec := range f.specs {
			for t, err := range spec.All() {
				if err != nil {
					return
				}
				e, isEnum := t.(*btf.Enum)
				if !isEnum {
					continue
				}
				for _, v := range e.Values {
					if _, have := f.enums[v.Name]; !have {
						f.enums[v.Name] = enumerator{int64(v.Value), e}
					}
				}
			}
		}
	})
	e, ok := f.enums[name]
	if !ok {
		return 0, nil, false
	}
	return e.value, btfType(e.of), true
}

type enumerator struct {
	value int64
	of    *btf.Enum
}
