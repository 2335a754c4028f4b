package source

import (
	"bytes"
	"fmt"

	"github.com/cilium/ebpf/btf"

	"kprobelab/internal/btfnames"
)

// BTF has functions with their parameters and all types, but no places: what it says of
// a parameter holds at the function's entry, by the rules of a call (System V ABI,
// x86-64, 3.2.3).

// OfBTF is what a kernel's BTF and its modules' say, with symbols by ascending address.
// Without any BTF, it knows the symbols alone.
func OfBTF(raw []byte, modules [][]byte, list []Symbol) (f *File, err error) {
	defer guard(&err)
	f = &File{symbols: symbols{byName: map[string][]int{}}, fromBTF: true}
	for _, s := range list {
		f.symbols.byName[s.Name] = append(f.symbols.byName[s.Name], len(f.symbols.list))
		f.symbols.list = append(f.symbols.list, s)
	}
	if len(raw) == 0 {
		return f, nil
	}
	base, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("%w: BTF: %w", ErrDamaged, err)
	}
	f.specs = []described{{base, &btfnames.Index{}}}
	for _, m := range modules {
		if spec, err := btf.LoadSplitSpecFromReader(bytes.NewReader(m), base); err == nil {
			f.specs = append(f.specs, described{spec, &btfnames.Index{}})
		}
	}
	return f, nil
}

// described are the types of a kernel or a module.
type described struct {
	*btf.Spec
	index *btfnames.Index
}

func (d described) named(name string) []btf.Type { return d.index.Types(d.Spec, name) }

// noDWARF says what a question needs that BTF does not answer.
func noDWARF(what string) error {
	return fmt.Errorf("%s: %w: it needs DWARF (--debuginfo FILE)", what, ErrNone)
}

// btfPlaces visits the entries of functions.
func (f *File) btfPlaces(w Where, visit func(*Place) error) error {
	if w.File != "" || w.Line != 0 || w.Offset != 0 {
		return noDWARF(w.String())
	}
	seen := map[uint64]bool{}
	for _, s := range f.Symbols(w.Function) {
		if seen[s.Start] {
			continue
		}
		seen[s.Start] = true
		if len(seen) > w.most() {
			return fmt.Errorf("%s is more than %d places", w, w.most())
		}
		p := &Place{Addr: s.Start, Symbol: s.Name, Function: s.Name}
		if proto := f.proto(s.Name); proto != nil {
			p.variables, p.returns = abi(proto), btfType(proto.Return)
		}
		if err := visit(p); err != nil {
			return err
		}
	}
	return nil
}

func (f *File) proto(name string) *btf.FuncProto {
	for _, spec := range f.specs {
		if fn, ok := btfnames.First[*btf.Func](spec.named(name)); ok {
			if p, ok := fn.Type.(*btf.FuncProto); ok {
				return p
			}
		}
	}
	return nil
}

// passed are the registers of the first six parameters.
var passed = [...]int{5, 4, 1, 2, 8, 9} // di si dx cx r8 r9

// word is the width of a register, and the room of a parameter on the stack.
const word = 8

// abi says where a function's parameters are when it is called.
func abi(p *btf.FuncProto) (out []*Variable) {
	next, stack := 0, int64(word) // the return address is before them
	for _, param := range p.Params {
		t := btfType(param.Type)
		if param.Name == "" && t.Kind == Void {
			break // "..."
		}
		v := &Variable{Name: param.Name, Type: t, Parameter: true}
		size := t.Real().Size
		registers := 1
		if t.Real().Composite() {
			registers = int((size + word - 1) / word)
		}
		switch {
		case registers == 0:
		case registers > 2 || next+registers > len(passed):
			v.Location = Location{Kind: Memory, Reg: 7, Offset: stack}
			stack += (size + word - 1) / word * word
		case registers == 2:
			v.Location = Location{Kind: Pieces}
			for range registers {
				v.Location.Pieces = append(v.Location.Pieces, Piece{Location{Kind: Register, Reg: passed[next]}, min(size, word)})
				size -= word
				next++
			}
		default:
			v.Location = Location{Kind: Register, Reg: passed[next]}
			next++
		}
		out = append(out, v)
	}
	return out
}

// btfType is a type of BTF.
func btfType(t btf.Type) *Type {
	out := &Type{Name: t.TypeName()}
	to := func(u btf.Type) func() *Type { return func() *Type { return btfType(u) } }
	switch t := t.(type) {
	case *btf.Int:
		out.Kind, out.Size = Base, int64(t.Size)
		out.Signed = t.Encoding&btf.Signed != 0
		out.Char = t.Size == 1 && (t.Encoding&btf.Char != 0 || t.Name == "char" || t.Name == "unsigned char")
	case *btf.Float:
		out.Kind, out.Size, out.Float = Base, int64(t.Size), true
	case *btf.Pointer:
		out.Kind, out.Size, out.target = Pointer, word, to(t.Target)
	case *btf.Struct:
		out.Kind, out.Size, out.members = Struct, int64(t.Size), btfMembers(t.Members)
	case *btf.Union:
		out.Kind, out.Size, out.members = Union, int64(t.Size), btfMembers(t.Members)
	case *btf.Array:
		out.Kind, out.Count, out.target = Array, int64(t.Nelems), to(t.Type)
		out.Size = out.Count * out.Target().size(0)
	case *btf.Enum:
		out.Kind, out.Size, out.Signed = Enum, int64(t.Size), t.Signed
		out.values = func() (list []Enumerator) {
			for _, v := range t.Values {
				list = append(list, Enumerator{v.Name, int64(v.Value)})
			}
			return list
		}
	case *btf.Typedef:
		out.Kind, out.target = Typedef, to(t.Type)
		out.Size = out.size(0)
	case *btf.Const:
		return qualified("const", t.Type)
	case *btf.Volatile:
		return qualified("volatile", t.Type)
	case *btf.Restrict:
		return qualified("restrict", t.Type)
	case *btf.TypeTag:
		return btfType(t.Type)
	case *btf.FuncProto:
		out.Kind, out.target = Function, to(t.Return)
		out.params = func() (list []Param) {
			for _, p := range t.Params {
				list = append(list, Param{p.Name, btfType(p.Type)})
			}
			return list
		}
	case *btf.Fwd:
		out.Kind, out.Incomplete = Struct, true
		if t.Kind == btf.FwdUnion {
			out.Kind = Union
		}
	default:
		return void
	}
	return out
}

func qualified(word string, t btf.Type) *Type {
	out := &Type{Kind: Qualified, Name: word, target: func() *Type { return btfType(t) }}
	out.Size = out.size(0)
	return out
}

func btfMembers(list []btf.Member) func() []Member {
	return func() (out []Member) {
		for _, m := range list {
			t := btfType(m.Type)
			one := Member{Name: m.Name, Type: t, Offset: int64(m.Offset / 8)}
			if bits := t.Real().Size * 8; m.BitfieldSize > 0 && bits > 0 {
				at := int64(m.Offset)
				one.Bits, one.Offset, one.Bit = int(m.BitfieldSize), at/bits*bits/8, int(at%bits)
			}
			out = append(out, one)
		}
		return out
	}
}
