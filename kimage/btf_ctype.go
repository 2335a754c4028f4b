package kimage

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// maxTypeDepth bounds how deep a type is followed: a damaged file may have
// types that contain themselves.
const maxTypeDepth = 32

// ctype writes a type as C does, around the declarator inner, which is empty
// for an abstract one.
func ctype(t btf.Type, inner string, depth int) string {
	if depth > maxTypeDepth {
		return join("...", inner)
	}
	depth++
	switch t := t.(type) {
	case nil, *btf.Void:
		return join("void", inner)
	case *btf.Pointer:
		return ctype(t.Target, pointerTo(t.Target, inner), depth)
	case *btf.Array:
		return ctype(t.Type, inner+fmt.Sprintf("[%d]", t.Nelems), depth)
	case *btf.FuncProto:
		return ctype(t.Return, inner+"("+params(t, depth)+")", depth)
	case *btf.Const:
		return qualified("const", t.Type, inner, depth)
	case *btf.Volatile:
		return qualified("volatile", t.Type, inner, depth)
	case *btf.Restrict:
		return qualified("restrict", t.Type, inner, depth)
	case *btf.TypeTag:
		return ctype(t.Type, inner, depth)
	case *btf.Struct:
		return join("struct "+orAnonymous(t.Name), inner)
	case *btf.Union:
		return join("union "+orAnonymous(t.Name), inner)
	case *btf.Enum:
		return join("enum "+orAnonymous(t.Name), inner)
	case *btf.Fwd:
		return join(t.Kind.String()+" "+t.Name, inner)
	default:
		return join(t.TypeName(), inner)
	}
}

// pointerTo is the declarator of a pointer: in brackets where it points to a
// function or an array.
func pointerTo(target btf.Type, inner string) string {
	for {
		tag, ok := target.(*btf.TypeTag)
		if !ok {
			break
		}
		target = tag.Type
	}
	switch target.(type) {
	case *btf.FuncProto, *btf.Array:
		return "(*" + inner + ")"
	}
	return "*" + inner
}

// qualified puts the qualifier before a plain type, and after the star of a
// pointer.
func qualified(word string, t btf.Type, inner string, depth int) string {
	if p, ok := t.(*btf.Pointer); ok {
		if inner != "" && inner[0] != '*' && inner[0] != '[' {
			inner = " " + inner
		}
		return ctype(p.Target, pointerTo(p.Target, word+inner), depth)
	}
	return word + " " + ctype(t, inner, depth)
}

func params(t *btf.FuncProto, depth int) string {
	var list []string
	for i, p := range t.Params {
		if _, void := p.Type.(*btf.Void); void && p.Name == "" && i == len(t.Params)-1 {
			list = append(list, "...")
			break
		}
		list = append(list, ctype(p.Type, "", depth))
	}
	if len(list) == 0 {
		return "void"
	}
	return strings.Join(list, ", ")
}

func orAnonymous(name string) string {
	if name == "" {
		return "{...}"
	}
	return name
}

// join puts a space between a type's name and its declarator.
func join(name, inner string) string {
	if inner == "" {
		return name
	}
	if inner[0] == '[' {
		return name + inner
	}
	return name + " " + inner
}

// declare puts a name into an abstract declarator's place.
func declare(typ, name string) string {
	if name == "" {
		return typ
	}
	if i := strings.Index(typ, "(*)"); i >= 0 {
		return typ[:i+2] + name + typ[i+2:]
	}
	if i := strings.IndexByte(typ, '['); i >= 0 {
		return typ[:i] + " " + name + typ[i:]
	}
	if strings.HasSuffix(typ, "*") {
		return typ + name
	}
	return typ + " " + name
}
