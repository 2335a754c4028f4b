package stap

import "strconv"

// constant is the value of @const: stap has the C compiler find it. Here it is a number, or a name
// of an enumeration, which the kernel's types have; those of the preprocessor they do not have.
func (a *analysis) constant(x *constExpr) int64 {
	if v, err := strconv.ParseInt(x.name, 0, 64); err == nil {
		return v
	}
	if a.k == nil || a.k.Constant == nil {
		a.fail(x.tok, "@const needs a kernel: name one with -r IMAGE")
	}
	v, ok := a.k.Constant(x.name)
	if !ok {
		a.fail(x.tok, "@const: %q is no enumerator of the kernel's types, and C is not compiled here", x.name)
	}
	return v
}
