package source

import (
	"debug/dwarf"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	"kprobelab/internal/ctype"
)

// entries makes a unit of entries, each of which has as its type the one that leads says; members have the same.
func entries(tags []dwarf.Tag, leads func(i int) int, members int) *Unit {
	u := &Unit{f: &File{}, h: &header{version: 4, addrSize: 8}, byOff: map[dwarf.Offset]*node{}}
	at := func(i int) dwarf.Offset { return dwarf.Offset(0x10 + i) }
	child := map[dwarf.Tag]dwarf.Tag{
		dwarf.TagStructType: dwarf.TagMember, dwarf.TagUnionType: dwarf.TagMember, dwarf.TagSubroutineType: dwarf.TagFormalParameter, dwarf.TagArrayType: dwarf.TagSubrangeType,
	}
	for i, tag := range tags {
		to := dwarf.Field{Attr: dwarf.AttrType, Val: at(leads(i)), Class: dwarf.ClassReference}
		n := &node{unit: u, Entry: &dwarf.Entry{Offset: at(i), Tag: tag, Field: []dwarf.Field{{Attr: dwarf.AttrName, Val: "a"}, to}}}
		for range members {
			c := &node{unit: u, parent: n, Entry: &dwarf.Entry{Tag: child[tag], Field: []dwarf.Field{to, {Attr: dwarf.AttrUpperBound, Val: int64(6)}}}}
			n.children = append(n.children, c)
		}
		u.byOff[at(i)] = n
	}
	u.root = &node{Entry: &dwarf.Entry{}, unit: u}
	return u
}

// TestTypesThatLeadToThemselves: DWARF's types lead to themselves, alone and by others, and are deeper than anybody follows.
func TestTypesThatLeadToThemselves(t *testing.T) {
	ask := func(t *testing.T, u *Unit) {
		t.Helper()
		typ := u.byOff[0x10].asType()
		for _, one := range []*ctype.Type{typ, typ.Target(), typ.Real(), ctype.PointerTo(typ), ctype.ArrayOf(typ, 3)} {
			require.Less(t, len(one.String())+len(one.Postfix())+len(one.Declaration()), 256*bounded.TypeText)
			require.LessOrEqual(t, one.Size(), int64(1)<<47)
			_, ok := one.Member("nosuch")
			require.False(t, ok)
			one.Signature()
			one.Enumerators()
		}
		v := Value{Type: ctype.PointerTo(typ), Name: "p"}
		_, err := v.Field("nosuch", true)
		require.Error(t, err)
		_, _ = v.Index(1)
	}
	tags := map[string]dwarf.Tag{
		"typedef": dwarf.TagTypedef, "const": dwarf.TagConstType, "volatile": dwarf.TagVolatileType, "restrict": dwarf.TagRestrictType, "atomic": dwarf.TagAtomicType,
		"pointer": dwarf.TagPointerType, "array": dwarf.TagArrayType, "structure": dwarf.TagStructType, "union": dwarf.TagUnionType,
		"function": dwarf.TagSubroutineType, "enumeration": dwarf.TagEnumerationType, "base": dwarf.TagBaseType,
	}
	for name, tag := range tags {
		t.Run(name, func(t *testing.T) {
			ask(t, entries([]dwarf.Tag{tag}, func(int) int { return 0 }, 0))
			ask(t, entries([]dwarf.Tag{tag}, func(int) int { return 0 }, 2))
			ask(t, entries([]dwarf.Tag{tag, tag, tag}, func(i int) int { return (i + 1) % 3 }, 3))
			for _, other := range tags {
				ask(t, entries([]dwarf.Tag{tag, other}, func(i int) int { return 1 - i }, 2))
			}
			long := make([]dwarf.Tag, 100_000)
			for i := range long {
				long[i] = tag
			}
			ask(t, entries(long, func(i int) int { return i + 1 }, 1))
			ask(t, entries(long[:40], func(i int) int { return i + 1 }, 2))
		})
	}
}

// TestManyParameters: a place with more variables than are read is an error, and its last one is found.
func TestManyParameters(t *testing.T) {
	place := func(n int) *Place {
		u := entries(nil, nil, 0)
		fn := &node{unit: u, ranged: true, Entry: &dwarf.Entry{Tag: dwarf.TagSubprogram}}
		for range n {
			fn.children = append(fn.children, &node{unit: u, parent: fn, ranged: true, Entry: &dwarf.Entry{Tag: dwarf.TagFormalParameter, Field: []dwarf.Field{{Attr: dwarf.AttrName, Val: "p"}}}})
		}
		return &Place{Function: "f", scope: fn, fn: fn}
	}
	for n, want := range map[int]bool{0: true, 1: true, 100: true, bounded.Variables: true, bounded.Variables + 1: false, 65_535: false} {
		list, err := place(n).Variables()
		if want {
			require.NoError(t, err)
			require.Len(t, list, n)
		} else {
			require.ErrorIs(t, err, ErrTooMuch)
			require.ErrorContains(t, err, "f has more than 4096 variables")
		}
	}
}
