//go:build linux

package main

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"

	"kprobelab/internal/bounded"
)

// typeName is a type as C writes it, with the names of types only.
func typeName(t btf.Type) string {
	after := ""
	for range bounded.BPFNested {
		switch v := t.(type) {
		case *btf.Pointer:
			if _, ok := btf.UnderlyingType(v.Target).(*btf.FuncProto); ok {
				return "function *" + after
			}
			t, after = v.Target, "*"+after
		case *btf.Array:
			t, after = v.Type, after+fmt.Sprintf("[%d]", v.Nelems)
		case *btf.Const:
			t = v.Type
		case *btf.Volatile:
			t = v.Type
		case *btf.Restrict:
			t = v.Type
		case *btf.TypeTag:
			t = v.Type
		default:
			return strings.TrimSpace(keyword(t) + " " + after)
		}
	}
	return "?" + after
}

// keyword is the name of a type that is no pointer and no array.
func keyword(t btf.Type) string {
	kind := ""
	switch t := t.(type) {
	case *btf.Void, nil:
		return "void"
	case *btf.Struct:
		kind = "struct"
	case *btf.Union:
		kind = "union"
	case *btf.Enum:
		kind = "enum"
	case *btf.Fwd:
		kind = t.Kind.String()
	default:
		return t.TypeName()
	}
	name := essential(t.TypeName())
	if name == "" {
		name = "{}"
	}
	return kind + " " + name
}

// alike reports whether a kernel's type means to a program what its own type means. Structures are compared by name.
func alike(own, kernels btf.Type) bool {
	for range bounded.BPFNested {
		a, b := btf.UnderlyingType(own), btf.UnderlyingType(kernels)
		switch a := a.(type) {
		case *btf.Int:
			switch b := b.(type) {
			case *btf.Int:
				return a.Size == b.Size && signed(a) == signed(b)
			case *btf.Enum:
				return a.Size == b.Size
			}
			return false
		case *btf.Enum:
			switch b := b.(type) {
			case *btf.Int:
				return a.Size == b.Size
			case *btf.Enum:
				return a.Size == b.Size
			}
			return false
		case *btf.Float:
			b, ok := b.(*btf.Float)
			return ok && a.Size == b.Size
		case *btf.Pointer:
			b, ok := b.(*btf.Pointer)
			if !ok {
				return false
			}
			own, kernels = a.Target, b.Target
			if pointsNowhere(own) || pointsNowhere(kernels) {
				return true
			}
		case *btf.Array:
			b, ok := b.(*btf.Array)
			if !ok || a.Nelems != b.Nelems {
				return false
			}
			own, kernels = a.Type, b.Type
		default:
			return keyword(a) == keyword(b)
		}
	}
	return true
}

func signed(t *btf.Int) bool { return t.Encoding == btf.Signed }

// pointsNowhere: void and functions are not compared, nor are types without a name.
func pointsNowhere(t btf.Type) bool {
	switch u := btf.UnderlyingType(t).(type) {
	case *btf.Void, *btf.FuncProto, nil:
		return true
	case *btf.Struct:
		return u.Name == ""
	case *btf.Union:
		return u.Name == ""
	}
	return false
}
