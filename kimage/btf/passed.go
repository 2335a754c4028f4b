package btf

import (
	"fmt"

	"kprobelab/internal/ctype"
)

// Limits of the parameters that a trampoline can pass on (btf_distill_func_proto).
const (
	mostParams   = 12 // MAX_BPF_FUNC_ARGS
	largestParam = 16
	wordSize     = 8
)

// Passed says how a trampoline of BPF programs passes on the arguments of a function.
type Passed struct {
	// Refused says why it cannot, "" if it can.
	Refused string `json:"refused,omitempty"`
	// Struct and Union: the function takes such, which not all releases pass on.
	Struct bool `json:"struct,omitempty"`
	Union  bool `json:"union,omitempty"`
	// Words is the number of 8-byte words of all arguments.
	Words int `json:"words,omitempty"`
}

// Passed describes the arguments of the first function of a name, as a trampoline passes them on;
// ok is false if BTF has no prototype of the function.
func (t *Types) Passed(name string) (p Passed, ok bool) {
	f, ok := t.function(name)
	if !ok {
		return p, false
	}
	params := f.Proto.Params()
	if f.Proto.Variadic {
		params = append(params, ctype.Param{Type: ctype.None})
	}
	if len(params) > mostParams {
		p.Refused = fmt.Sprintf("the function takes %d arguments", len(params))
		return p, true
	}
	if n, kind := passedSize(f.Proto.Target()); n < 0 || kind == passedStruct || kind == passedUnion {
		p.Refused = "the function returns a " + kind
		return p, true
	}
	for i, a := range params {
		n, kind := passedSize(a.Type)
		switch {
		case kind == passedVoid && i == len(params)-1:
			p.Refused = "the function takes variable arguments"
		case kind == passedVoid:
			p.Refused = fmt.Sprintf("the function's argument %d has no type", i+1)
		case n < 0 || n > largestParam:
			p.Refused = fmt.Sprintf("the function's argument %d is a %s", i+1, kind)
			if n > 0 {
				p.Refused += fmt.Sprintf(" of %d bytes", n)
			}
		case kind == passedStruct:
			p.Struct = true
		case kind == passedUnion:
			p.Union = true
		}
		if p.Refused != "" {
			return Passed{Refused: p.Refused}, true
		}
		p.Words += (n + wordSize - 1) / wordSize
	}
	return p, true
}

// The kinds of type that matter for passing arguments on.
const (
	passedVoid   = "void"
	passedStruct = "structure"
	passedUnion  = "union"
)

// passedSize returns the size of an argument in registers or on the stack, -1 if it is not passed so.
func passedSize(t *ctype.Type) (size int, kind string) {
	r := t.Real()
	switch {
	case r.Kind == ctype.Void:
		return 0, passedVoid
	case r.Kind == ctype.Pointer:
		return wordSize, "pointer"
	case r.Kind == ctype.Base && r.Float:
		return -1, "floating-point number"
	case r.Kind == ctype.Base:
		return int(r.Bytes), "integer"
	case r.Kind == ctype.Enum:
		return int(r.Bytes), "enumeration"
	case r.Kind == ctype.Struct && !r.Incomplete:
		return int(r.Bytes), passedStruct
	case r.Kind == ctype.Union && !r.Incomplete:
		return int(r.Bytes), passedUnion
	}
	return -1, "thing of another kind"
}
