package ctype

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// ask asks a type all that there is to ask. None of it may take long, or much of the stack.
func ask(t *testing.T, typ *Type) {
	t.Helper()
	require.LessOrEqual(t, typ.Size(), int64(1)<<47)
	for _, one := range []*Type{typ, typ.Real(), typ.Unqualified(), typ.Target()} {
		for _, text := range []string{one.String(), one.Postfix(), one.Declaration()} {
			require.Less(t, len(text), 64*bounded.TypeText)
		}
		_, ok := one.Member("nosuch")
		require.False(t, ok)
		one.Signature()
		one.align(Search())
	}
}

// written1 reads types as they are written. Type 1 is the one that is asked.
func written1(t *testing.T, types ...uint32) *Type {
	t.Helper()
	b, err := ReadBTF(raw("\x00a\x00b\x00", types...), nil)
	require.NoError(t, err)
	return b.Type(1)
}

// TestTypesThatLeadToThemselves: rings of each kind of type, of one type and of several.
func TestTypesThatLeadToThemselves(t *testing.T) {
	const a, b = 1, 3 // names
	for name, types := range map[string][]uint32{
		"typedef":            {a, BTFTypedef << 24, 1},
		"const":              {0, BTFConst << 24, 1},
		"volatile":           {0, BTFVolatile << 24, 1},
		"restrict":           {0, BTFRestrict << 24, 1},
		"pointer":            {0, BTFPtr << 24, 1},
		"tag":                {a, BTFTypeTag << 24, 1},
		"array":              {0, BTFArray << 24, 0, 1, 1, 2},
		"array_of_0":         {0, BTFArray << 24, 0, 1, 1, 0},
		"array_2^32":         {0, BTFArray << 24, 0, 1, 1, 0xffffffff},
		"structure":          {a, BTFStruct<<24 | 1, 8, 0, 1, 0},
		"union":              {a, BTFUnion<<24 | 1, 8, 0, 1, 0},
		"named_member":       {a, BTFStruct<<24 | 1, 8, b, 1, 0},
		"function_returns":   {0, BTFProto << 24, 1},
		"function_parameter": {0, BTFProto<<24 | 1, 0, a, 1},
		"enumeration":        {a, BTFEnum<<24 | 1, 4, b, 1},
		"variable":           {a, BTFVar << 24, 1, 0},
		"function":           {a, BTFFunc << 24, 1},
		"const_of_typedef":   {0, BTFConst << 24, 2, a, BTFTypedef << 24, 1},
		"array_of_const":     {0, BTFArray << 24, 0, 2, 2, 3, 0, BTFConst << 24, 1},
		"pointer_to_array":   {0, BTFPtr << 24, 2, 0, BTFArray << 24, 0, 1, 1, 3},
		"union_of_typedef":   {0, BTFUnion<<24 | 1, 8, 0, 2, 0, a, BTFTypedef << 24, 1},
		"function_of_array":  {0, BTFProto<<24 | 1, 2, a, 2, 0, BTFArray << 24, 0, 1, 1, 3},
		"tag_of_pointer":     {a, BTFTypeTag << 24, 2, 0, BTFPtr << 24, 1},
	} {
		t.Run(name, func(t *testing.T) { ask(t, written1(t, types...)) })
	}
}

// TestTypesThatTakeForEver: types whose parts, counted by the ways to them, are more than anybody can visit.
func TestTypesThatTakeForEver(t *testing.T) {
	chain := func(n int, one func(next uint32) []uint32) (list []uint32) {
		for i := range n {
			list = append(list, one(uint32(i+2))...)
		}
		return list
	}
	for name, types := range map[string][]uint32{
		"two_of_its_own":     {1, BTFStruct<<24 | 2, 8, 0, 1, 0, 0, 1, 0},
		"two_unions":         {0, BTFUnion<<24 | 2, 8, 0, 2, 0, 0, 2, 0, 0, BTFUnion<<24 | 2, 8, 0, 1, 0, 0, 1, 0},
		"two_each_of_30":     chain(30, func(next uint32) []uint32 { return []uint32{0, BTFStruct<<24 | 2, 8, 0, next, 0, 0, next, 0} }),
		"by_typedefs":        chain(60, func(next uint32) []uint32 { return []uint32{0, BTFStruct<<24 | 2, 8, 0, next, 0, 0, 1, 0} }),
		"two_parameters":     {0, BTFProto<<24 | 2, 1, 1, 1, 3, 1},
		"parameters_of_30":   chain(30, func(next uint32) []uint32 { return []uint32{0, BTFProto<<24 | 2, next, 1, next, 3, next} }),
		"arrays_of_both":     {0, BTFStruct<<24 | 2, 8, 1, 2, 0, 3, 2, 0, 0, BTFArray << 24, 0, 1, 1, 1 << 30},
		"100000_typedefs":    chain(100_000, func(next uint32) []uint32 { return []uint32{1, BTFTypedef << 24, next} }),
		"300000_pointers":    chain(300_000, func(next uint32) []uint32 { return []uint32{0, BTFPtr << 24, next} }),
		"300000_structures":  chain(300_000, func(next uint32) []uint32 { return []uint32{0, BTFStruct<<24 | 1, 8, 0, next, 0} }),
		"100000_arrays":      chain(100_000, func(next uint32) []uint32 { return []uint32{0, BTFArray << 24, 0, next, next, 2} }),
		"100000_qualifiers":  chain(100_000, func(next uint32) []uint32 { return []uint32{0, BTFConst << 24, next} }),
		"100000_tags":        chain(100_000, func(next uint32) []uint32 { return []uint32{1, BTFTypeTag << 24, next} }),
		"65535_of_itself":    many(BTFStruct, 3),
		"65535_in_an_union":  many(BTFUnion, 3),
		"65535_parameters":   many(BTFProto, 2),
		"65535_enumerators":  many(BTFEnum, 2),
		"32_functions_of_it": chain(32, func(next uint32) []uint32 { return []uint32{0, BTFProto<<24 | 3, 1, 0, next, 0, next, 0, 1} }),
	} {
		t.Run(name, func(t *testing.T) { ask(t, written1(t, types...)) })
	}
}

// many is a type with the most parts that BTF can count, all of the type itself.
func many(kind uint32, words int) []uint32 {
	list := []uint32{1, kind<<24 | 0xffff, 8}
	for range 0xffff {
		list = append(list, []uint32{0, 1, 0}[:words]...)
	}
	return list
}

// A chain is followed to its 32nd type, and a size is the size of the type at its end.
func TestChains(t *testing.T) {
	for n := 1; n < 40; n++ {
		var list []uint32
		for i := range n {
			list = append(list, 1, BTFTypedef<<24, uint32(i+2))
		}
		typ := written1(t, append(list, 3, BTFInt<<24, 4, 32)...)
		if n < bounded.TypeDepth {
			require.Equal(t, "b", typ.Real().Name, n)
			require.EqualValues(t, 4, typ.Size())
		} else {
			require.Same(t, Endless, typ.Real(), n)
			require.Zero(t, typ.Size())
		}
	}
	three := ArrayOf(ArrayOf(&Type{Kind: Base, Name: "char", Bytes: 1}, 5), 3)
	require.EqualValues(t, 15, three.Size())
	require.Equal(t, "char[5][3]", three.String())
	require.Zero(t, ArrayOf(ArrayOf(three, 1<<40), 1<<40).Size())
}

// The text of a function ends with three points after the bound.
func TestTextsAreBounded(t *testing.T) {
	text := written1(t, many(BTFProto, 2)...).Declaration()
	require.True(t, strings.HasSuffix(text, "...)"), fmt.Sprintf("%.40s", text))
}

// TestManyParameters: a function with more parameters than the bound has no prototype.
func TestManyParameters(t *testing.T) {
	for n, want := range map[uint32]bool{0: true, 1: true, bounded.Params: true, bounded.Params + 1: false, 0xffff: false} {
		list := []uint32{1, BTFFunc << 24, 2, 0, BTFProto<<24 | n, 0}
		for range n {
			list = append(list, 3, 2)
		}
		b, err := ReadBTF(raw("\x00f\x00p\x00", list...), nil)
		require.NoError(t, err)
		_, ok := b.Function("f")
		require.Equal(t, want, ok, n)
	}
}
