package stap

import "strconv"

// constant returns the value of @const. stap lets the C compiler find it. Here it is a number, or an
// enumerator among the kernel's types; macros of the C preprocessor are not among them.
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
