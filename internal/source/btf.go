package source

import (
	"fmt"

	"kprobelab/internal/ctype"
)

// BTF has functions with their parameters and all types, but no places: a parameter's place is
// known at the function's entry only, by the rules of a call (System V ABI, x86-64, 3.2.3).

// OfBTF makes a File of the BTF of a kernel and of its modules, with symbols by
// ascending address. Without any BTF, the File has the symbols alone.
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
	base, err := ctype.ReadBTF(raw, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	f.btf = []*ctype.BTF{base}
	for _, m := range modules {
		if b, err := ctype.ReadBTF(m, base); err == nil {
			f.btf = append(f.btf, b)
		}
	}
	return f, nil
}

// noDWARF is the error of a question that BTF cannot answer.
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
			p.variables, p.returns = abi(proto), proto.Target()
		}
		if err := visit(p); err != nil {
			return err
		}
	}
	return nil
}

// proto is the type of a function, nil if it is not known.
func (f *File) proto(name string) *ctype.Type {
	for _, b := range f.btf {
		if fn, ok := b.Function(name); ok {
			return fn.Proto
		}
	}
	return nil
}

// passed are the registers of the first six parameters.
var passed = [...]int{5, 4, 1, 2, 8, 9} // di si dx cx r8 r9

// word is the width of a register, and the room of a parameter on the stack.
const word = 8

// abi returns the places of a function's parameters when it is called.
func abi(p *ctype.Type) (out []*Variable) {
	next, stack := 0, int64(word) // the return address is before them
	for _, param := range p.Params() {
		t := param.Type
		v := &Variable{Name: param.Name, Type: t, Parameter: true}
		size := t.Size()
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
