package stap

import (
	"strings"

	"kprobelab/internal/source"
)

// maxTypeDepth bounds types of types.
const maxTypeDepth = 32

// typeName is a type as stap writes it: what modifies a type comes after it.
func typeName(t *source.Type) string { return typeText(t, "", 0) }

// typeText is a type with what modifies it.
func typeText(t *source.Type, after string, depth int) string {
	named := func(word string) string {
		if t.Name == "" {
			return word + "{...}" + after
		}
		return word + t.Name + after
	}
	if depth > maxTypeDepth {
		return "..." + after
	}
	depth++
	switch t.Kind {
	case source.Pointer:
		if to := t.Target(); to.Kind == source.Struct && to.Name == "__va_list_tag" {
			return "va_list" + after
		}
		return typeText(t.Target(), "*"+after, depth)
	case source.Array:
		return typeText(t.Target(), "[]"+after, depth)
	case source.Qualified:
		return typeText(t.Target(), " "+t.Name+after, depth)
	case source.Function:
		var params []string
		for _, p := range t.Params() {
			params = append(params, typeText(p.Type, "", depth))
		}
		if t.Variadic {
			params = append(params, "...")
		}
		if len(params) == 0 {
			params = []string{"void"}
		}
		return typeText(t.Target(), "", depth) + " (" + after + ") (" + strings.Join(params, ", ") + ")"
	case source.Struct:
		return named("struct ")
	case source.Union:
		return named("union ")
	case source.Enum:
		return named("enum ")
	case source.Void:
		return "void" + after
	}
	return named("")
}
