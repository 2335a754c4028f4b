// Package btf says which types a kernel and its modules have by their BTF: prototypes, members of
// structures, and how a BPF trampoline passes arguments on.
//
// It must not know of images: it reads the bytes of BTF.
package btf

import (
	"bytes"
	"fmt"
	"slices"

	"kprobelab/internal/ctype"
)

// Proto is a function's prototype.
type Proto struct {
	Name   string
	Params []Param
	// Ret is the result, without a name; a function without a result has the Type
	// "void" and the Size 0.
	Ret Param
	// Variadic is true for a function with "..." after its parameters.
	Variadic bool
}

// Takes is nil where a call may have n arguments; the error says how many it has
// to have.
func (p *Proto) Takes(n int) error {
	want := len(p.Params)
	if n == want || n > want && p.Variadic {
		return nil
	}
	text := fmt.Sprintf("%d arguments", want)
	switch want {
	case 0:
		text = "no argument"
	case 1:
		text = "1 argument"
	}
	if p.Variadic {
		text = "at least " + text
	}
	return fmt.Errorf("%s takes %s, not %d: %s", p.Name, text, n, *p)
}

// Param is one parameter of a function, or its result.
type Param struct {
	// Name is empty if the source gives none.
	Name string
	// Type is the C text of the type, such as "const char *".
	Type string
	// Size in bytes, 0 for void.
	Size int
	// Signed is true for signed integers and enumerations.
	Signed bool
	// Pointer is true for a pointer of any kind.
	Pointer bool
}

// Types are the types that BTF knows, of a kernel and of its modules. The zero
// Types knows none.
type Types struct {
	// files are the kernel's BTF and then the modules'.
	files []*ctype.BTF
}

// New reads a kernel's BTF, and that of modules, which builds on it.
func New(raw []byte, modules [][]byte) (*Types, error) {
	base, err := ctype.ReadBTF(raw, nil)
	if err != nil {
		return &Types{}, err
	}
	t := &Types{files: []*ctype.BTF{base}}
	for _, raw := range modules {
		// A module that was built against another kernel has types that do
		// not fit; its functions have no prototypes then.
		if b, err := ctype.ReadBTF(raw, base); err == nil {
			t.files = append(t.files, b)
		}
	}
	return t, nil
}

// With are the Types with a module's BTF, which builds on the kernel's.
func (t *Types) With(module []byte) (*Types, error) {
	if len(t.files) == 0 {
		return t, nil
	}
	b, err := ctype.ReadBTF(module, t.files[0])
	if err != nil {
		return t, err
	}
	return &Types{files: append(slices.Clip(t.files), b)}, nil
}

// Proto is the prototype of a function by its name, and whether BTF knows the
// function. Of functions with one name the first one counts. It is safe for
// concurrent use.
func (t *Types) Proto(name string) (Proto, bool) {
	if f, ok := t.function(name); ok {
		return protoOf(name, f.Proto), true
	}
	return Proto{}, false
}

// Empty reports that there are none: no BTF, or none that can be read.
func (t *Types) Empty() bool { return t == nil || len(t.files) == 0 }

// FuncID is a function's number in the BTF of the kernel, or of the first module
// that has it: BPF programs attach by it.
func (t *Types) FuncID(name string) (id int, ok bool) {
	f, ok := t.function(name)
	return f.ID, ok
}

// FuncName is the name of the function with that number in the kernel's BTF.
func (t *Types) FuncName(id int) (name string, ok bool) {
	if len(t.files) == 0 {
		return "", false
	}
	f, ok := t.files[0].FunctionAt(id)
	return f.Name, ok
}

// function is the first function of a name that has a prototype.
func (t *Types) function(name string) (f ctype.Func, ok bool) {
	for _, b := range t.files {
		if f, ok = b.Function(name); ok {
			return f, true
		}
	}
	return f, false
}

func protoOf(name string, p *ctype.Type) Proto {
	out := Proto{Name: name, Ret: paramOf("", p.Target()), Params: []Param{}, Variadic: p.Variadic}
	for _, a := range p.Params() {
		out.Params = append(out.Params, paramOf(a.Name, a.Type))
	}
	return out
}

func paramOf(name string, t *ctype.Type) Param {
	r := t.Real()
	return Param{Name: name, Type: t.Declaration(), Size: int(t.Size()), Pointer: r.Kind == ctype.Pointer, Signed: r.Signed}
}

// String is the parameter as C declares it: "const char *fmt".
func (p Param) String() string { return ctype.Declare(p.Type, p.Name) }

// String is the prototype as C would declare it.
func (p Proto) String() string {
	var b bytes.Buffer
	b.WriteString(ctype.Declare(p.Ret.Type, p.Name))
	b.WriteByte('(')
	for i, a := range p.Params {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(a.String())
	}
	switch {
	case p.Variadic && len(p.Params) > 0:
		b.WriteString(", ...")
	case p.Variadic:
		b.WriteString("...")
	case len(p.Params) == 0:
		b.WriteString("void")
	}
	b.WriteByte(')')
	return b.String()
}
