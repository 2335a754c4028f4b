package ctype

import (
	"fmt"
	"strings"
)

// String is the type as a person writes it: a pointer has its star after the type, a qualifier is left out.
func (t *Type) String() string { return t.text(Writing()) }

func (t *Type) text(w *Walk) string {
	if !w.Enter() {
		return "…"
	}
	defer w.Leave()
	switch t.Kind {
	case Pointer:
		return t.Target().text(w) + "*"
	case Array:
		if t.Count == 0 {
			return t.Target().text(w) + "[]"
		}
		return fmt.Sprintf("%s[%d]", t.Target().text(w), t.Count)
	case Function:
		return "function"
	case Qualified:
		return t.Target().text(w)
	}
	return t.tagged(" {…}")
}

// tagWords are the words before a tag.
var tagWords = map[Kind]string{Struct: "struct", Union: "union", Enum: "enum"}

// tagged returns the name with its word, or the word with unnamed in place of a name.
func (t *Type) tagged(unnamed string) string {
	switch word := tagWords[t.Kind]; {
	case word == "":
		return t.Name
	case t.Name == "":
		return word + unnamed
	default:
		return word + " " + t.Name
	}
}

// Postfix is the type as SystemTap writes it: what modifies a type comes after it.
func (t *Type) Postfix() string { return t.postfix("", Writing()) }

func (t *Type) postfix(after string, w *Walk) string {
	if !w.Enter() {
		return "..." + after
	}
	defer w.Leave()
	switch t.Kind {
	case Pointer:
		if to := t.Target(); to.Kind == Struct && to.Name == "__va_list_tag" {
			return "va_list" + after
		}
		return t.Target().postfix("*"+after, w)
	case Array:
		return t.Target().postfix("[]"+after, w)
	case Qualified:
		return t.Target().postfix(" "+t.Name+after, w)
	case Function:
		list := t.each(w, func(p *Type) string { return p.postfix("", w) })
		return t.Target().postfix("", w) + " (" + after + ") (" + list + ")"
	}
	if t.Name == "" && tagWords[t.Kind] == "" {
		return "{...}" + after
	}
	return t.tagged(" {...}") + after
}

// each joins the texts of the parameters. After the bound on parts come three points.
func (t *Type) each(w *Walk, text func(*Type) string) string {
	var list []string
	for _, p := range t.Params() {
		if w.Full() {
			list = append(list, "...")
			break
		}
		list = append(list, text(p.Type))
	}
	switch {
	case t.Variadic:
		list = append(list, "...")
	case len(list) == 0:
		return "void"
	}
	return strings.Join(list, ", ")
}

// Declaration is the type as C declares something of it without a name: "char (*)[16]".
func (t *Type) Declaration() string { return t.declare("", Writing()) }

// declare writes a type around the declarator inner.
func (t *Type) declare(inner string, w *Walk) string {
	if !w.Enter() {
		return join("...", inner)
	}
	defer w.Leave()
	switch t.Kind {
	case Void:
		return join("void", inner)
	case Pointer:
		return t.Target().declare(pointerTo(t.Target(), inner), w)
	case Array:
		return t.Target().declare(inner+fmt.Sprintf("[%d]", t.Count), w)
	case Function:
		return t.Target().declare(inner+"("+t.each(w, func(p *Type) string { return p.declare("", w) })+")", w)
	case Qualified:
		// A qualifier stands before a plain type, and after the star of a pointer.
		p := t.Target()
		if p.Kind != Pointer {
			return t.Name + " " + p.declare(inner, w)
		}
		if inner != "" && inner[0] != '*' && inner[0] != '[' {
			inner = " " + inner
		}
		return p.Target().declare(pointerTo(p.Target(), t.Name+inner), w)
	}
	return join(t.tagged(" {...}"), inner)
}

// pointerTo is the declarator of a pointer: in brackets if it points to a function or an array.
func pointerTo(target *Type, inner string) string {
	if target.Kind == Function || target.Kind == Array {
		return "(*" + inner + ")"
	}
	return "*" + inner
}

// join puts a space between a type's name and its declarator.
func join(name, inner string) string {
	if inner == "" || inner[0] == '[' {
		return name + inner
	}
	return name + " " + inner
}

// Declare puts a name into the place that a declaration has for it.
func Declare(declaration, name string) string {
	if name == "" {
		return declaration
	}
	if i := strings.Index(declaration, "(*)"); i >= 0 {
		return declaration[:i+2] + name + declaration[i+2:]
	}
	if i := strings.IndexByte(declaration, '['); i >= 0 {
		return declaration[:i] + " " + name + declaration[i:]
	}
	if strings.HasSuffix(declaration, "*") {
		return declaration + name
	}
	return declaration + " " + name
}
