package source

import (
	"debug/dwarf"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/ctype"
	"kprobelab/internal/source/formula"
	"kprobelab/x86"
)

// signs are the operations as the rows of this test have them.
var signs = map[formula.Op]string{
	formula.Add: "+", formula.Sub: "-", formula.Mul: "*", formula.Div: "/", formula.DivU: "/u", formula.ModU: "%u", formula.And: "&", formula.Or: "|",
	formula.Xor: "^", formula.Shl: "<<", formula.Shr: ">>", formula.ShrU: ">>u", formula.Eq: "==", formula.Ne: "!=", formula.Lt: "<", formula.Le: "<=",
	formula.Gt: ">", formula.Ge: ">=", formula.LtU: "<u", formula.LeU: "<=u", formula.GtU: ">u", formula.GeU: ">=u", formula.Neg: "-", formula.Complement: "~",
}

func written(f *formula.Formula) string {
	switch {
	case f == nil:
		return "nothing"
	case f.Op == formula.Number:
		return fmt.Sprint(f.N)
	case f.Op == formula.Load && !loadable(f.N):
		panic("BUG: a load of so many bytes")
	case f.Op == formula.Register && f.N >= int64(registers):
		panic("BUG: a register without a name")
	case f.Op == formula.Register:
		return x86.DWARF[f.N]
	case f.Op == formula.Load:
		return fmt.Sprintf("[%s]%d", written(f.X), f.N)
	case f.Y == nil:
		return signs[f.Op] + written(f.X)
	}
	return fmt.Sprintf("(%s %s %s)", written(f.X), signs[f.Op], written(f.Y))
}

// Each row is an expression without DW_OP_stack_value at its end, and the value that it computes.
func TestFormulas(t *testing.T) {
	h := &header{version: 5, addrSize: 8}
	f := &File{debug: map[string][]byte{}}
	u := &Unit{f: f, h: h, byOff: map[dwarf.Offset]*node{}}
	base := func(at dwarf.Offset, size, encoding int64) {
		u.byOff[at] = &node{unit: u, Entry: &dwarf.Entry{Tag: dwarf.TagBaseType, Field: []dwarf.Field{{Attr: dwarf.AttrByteSize, Val: size}, {Attr: dwarf.AttrEncoding, Val: encoding}}}}
	}
	const int32At, uint32At, floatAt = 0x10, 0x11, 0x12
	base(int32At, 4, 5)
	base(uint32At, 4, 7)
	base(floatAt, 8, 4)
	p := &Place{Addr: 0x1000, fn: &node{Entry: &dwarf.Entry{}, unit: u, ranged: true}}
	const di, si = opBreg0 + 5, opBreg0 + 4
	double := []byte{di, 0}
	for range 12 {
		double = append(double, 0x12, opPlus) // dup, plus
	}
	for name, row := range map[string]struct {
		raw      []byte
		computes string
	}{
		"difference_of_two":         {[]byte{di, 0, si, 8, opMinus}, "(di - (si + 8))"},
		"element_by_its_number":     {[]byte{di, 0, si, 0, opMinus, 0x32, 0x25}, "((di - si) >>u 2)"},
		"duplicate":                 {[]byte{di, 0, 0x12, 0x1e}, "(di * di)"},
		"over":                      {[]byte{di, 0, si, 0, 0x14, opPlus}, "(si + di)"},
		"pick":                      {[]byte{di, 0, si, 0, opPick, 1, opPlus}, "(si + di)"},
		"swap":                      {[]byte{di, 0, si, 0, 0x16, opMinus}, "(si - di)"},
		"rotate":                    {[]byte{di, 0, si, 0, 0x33, 0x17, opMinus, opMinus}, "(3 - (di - si))"},
		"drop":                      {[]byte{di, 0, si, 0, 0x13}, "di"},
		"byte_of_memory":            {[]byte{di, 8, opDerefSize, 1}, "[(di + 8)]1"},
		"signed_division":           {[]byte{di, 0, 0x37, 0x1b}, "(di / 7)"},
		"comparison":                {[]byte{di, 0, 0x30, 0x29}, "(di == 0)"},
		"negated":                   {[]byte{di, 0, 0x1f}, "-di"},
		"cut_with_a_sign":           {[]byte{di, 0, opConvert, int32At}, "((di << 32) >> 32)"},
		"cut_without":               {[]byte{di, 0, opConvert, uint32At}, "(di & 4294967295)"},
		"unsigned_comparison":       {[]byte{opRegvalType, 5, uint32At, opRegvalType, 4, uint32At, 0x2d}, "((di & 4294967295) <u (si & 4294967295))"},
		"sum_of_a_type":             {[]byte{opRegvalType, 5, uint32At, opConstType, uint32At, 4, 1, 0, 0, 0, opPlus}, "(((di & 4294967295) + (1 & 4294967295)) & 4294967295)"},
		"memory_of_a_type":          {[]byte{di, 0, opDerefType, 4, int32At}, "(([di]4 << 32) >> 32)"},
		"entry_value_in_a_sum":      {[]byte{opEntryValue, 1, opReg0 + 5, 0x31, opPlus}, "nothing"},
		"floating_point":            {[]byte{di, 0, opConvert, floatAt}, "nothing"},
		"no_such_type":              {[]byte{di, 0, opConvert, 0x77}, "nothing"},
		"jump":                      {[]byte{di, 0, opBra, 1, 0, 0x31}, "nothing"},
		"one_operand_too_few":       {[]byte{di, 0, opPlus}, "nothing"},
		"nothing_on_the_stack":      {[]byte{0x12}, "nothing"},
		"vector_register":           {[]byte{opBreg0 + 17, 0, 0x31, opPlus}, "nothing"},
		"three_bytes_of_memory":     {[]byte{di, 0, opDerefType, 3, int32At}, "nothing"},
		"typed_vector_register":     {[]byte{opRegvalType, 17, int32At}, "nothing"},
		"doubled_until_it_is_large": {double, "nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			ops, known := f.ops(h, row.raw)
			require.True(t, known)
			require.Equal(t, row.computes, written(p.formula(&node{Entry: &dwarf.Entry{}, unit: u}, ops)))
		})
	}
}

// Rule: no bytes of an expression do harm, whatever they mean.
func FuzzExpression(f *testing.F) {
	for _, raw := range []string{"\x75\x00\x74\x08\x1c\x32\x25\x9f", "\x50\x93\x08\x51\x93\x08", "\xa3\x01\x55\x9f", "\x75\x08\x06\x23\x04", "\x75\x00\xa8\x10\xa8\x11\x9f", "\x9e\x02\x34\x12"} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		h := &header{version: 5, addrSize: 8}
		file := &File{debug: map[string][]byte{}}
		u := &Unit{f: file, h: h, byOff: map[dwarf.Offset]*node{}}
		u.byOff[0x10] = &node{unit: u, Entry: &dwarf.Entry{Tag: dwarf.TagBaseType, Field: []dwarf.Field{{Attr: dwarf.AttrByteSize, Val: int64(4)}, {Attr: dwarf.AttrEncoding, Val: int64(5)}}}}
		u.root = &node{Entry: &dwarf.Entry{}, unit: u}
		file.recent = []*Unit{u}
		p := &Place{Addr: 0x1000, fn: &node{Entry: &dwarf.Entry{}, unit: u, ranged: true}}
		v := &node{Entry: &dwarf.Entry{}, unit: u}
		l := p.expression(v, raw)
		_ = l.String()
		if l.Formula != nil {
			_ = written(l.Formula)
		}
		for _, by := range []*Location{&l, l.First} {
			if by == nil {
				continue
			}
			x, err := (&Variable{Name: "v", Type: ctype.PointerTo(&ctype.Type{Kind: ctype.Base, Bytes: 8}), Location: *by}).Value()
			if err == nil {
				_, _ = x.Index(1)
				_ = x.Follow()
			}
		}
	})
}
