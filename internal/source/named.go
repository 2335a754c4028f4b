package source

import (
	"debug/dwarf"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/ctype"
)

// Named is a type by its name: a structure, a union, an enumeration, a typedef or a base type.
// Of several it is the first that is described whole.
func (f *File) Named(name string) (*ctype.Type, error) {
	return f.named(name, ctype.Struct, ctype.Union, ctype.Enum, ctype.Typedef, ctype.Base)
}

// Tagged is a structure, a union or an enumeration by its name, as kind says.
func (f *File) Tagged(kind ctype.Kind, name string) (*ctype.Type, error) { return f.named(name, kind) }

func (f *File) named(name string, kinds ...ctype.Kind) (t *ctype.Type, err error) {
	defer guard(&err)
	if f.fromBTF {
		for _, b := range f.btf {
			for t := range b.Named(name) {
				if slices.Contains(kinds, t.Kind) && !t.Incomplete && !t.Float {
					return t, nil
				}
			}
		}
		return nil, notFound("no type %s is described", name)
	}
	f.left = bounded.EntriesRead
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
var tagKinds = map[dwarf.Tag]ctype.Kind{
	dwarf.TagStructType: ctype.Struct, dwarf.TagUnionType: ctype.Union, dwarf.TagEnumerationType: ctype.Enum, dwarf.TagTypedef: ctype.Typedef, dwarf.TagBaseType: ctype.Base,
}

// Returns is the type of the result of the place's function.
func (p *Place) Returns() *ctype.Type {
	if p.returns != nil {
		return p.returns
	}
	if p.fn == nil {
		return ctype.None
	}
	return p.scope.unit.typeOf(p.scope)
}

// Written is a type in C's words, as the kernel's tables of events have them: "const char *const *". One that is
// not described is an unsigned long, or what a pointer points to is void.
func (f *File) Written(text string) *ctype.Type {
	if t := ctype.Integer(text); t != nil {
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
		t = ctype.None
	default:
		if t, err = f.Named("unsigned long"); err != nil {
			t = &ctype.Type{Kind: ctype.Base, Bytes: word}
		}
	}
	for range stars {
		t = ctype.PointerTo(t)
	}
	return t
}

// GlobalType is the type of a global variable.
func (f *File) GlobalType(name string) (t *ctype.Type, err error) {
	defer guard(&err)
	if f.fromBTF {
		for _, b := range f.btf {
			if t, ok := b.Variable(name); ok {
				return t, nil
			}
		}
		return nil, notFound("the type of the variable %s is not described", name)
	}
	f.left = bounded.EntriesRead
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
func (f *File) Enumerator(name string) (value int64, enum *ctype.Type, ok bool) {
	f.enumsOnce.Do(func() {
		f.enums = map[string]enumerator{}
		for _, b := range f.btf {
			for t := range b.Types() {
				for _, v := range t.Enumerators() {
					if _, have := f.enums[v.Name]; !have {
						f.enums[v.Name] = enumerator{v.Value, t}
					}
				}
			}
		}
	})
	e, ok := f.enums[name]
	return e.value, e.of, ok
}

type enumerator struct {
	value int64
	of    *ctype.Type
}
