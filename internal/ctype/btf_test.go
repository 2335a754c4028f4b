package ctype

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// build is the BTF of types, as a library writes it.
func build(t *testing.T, list ...btf.Type) []byte {
	t.Helper()
	b, err := btf.NewBuilder(list, nil)
	require.NoError(t, err)
	raw, err := b.Marshal(nil, nil)
	require.NoError(t, err)
	return raw
}

// Names are whole, as in the kernel: libraries drop the text after three underscores.
func TestNamesAreWhole(t *testing.T) {
	number := &btf.Int{Name: "int", Size: 4}
	structure := func(name string) btf.Type {
		return &btf.Struct{Name: name, Size: 4, Members: []btf.Member{{Name: "m", Type: number}}}
	}
	function := func(name string) btf.Type {
		return &btf.Func{Name: name, Type: &btf.FuncProto{Return: number}, Linkage: btf.GlobalFunc}
	}
	b, err := ReadBTF(build(t, structure("a"), structure("a___b"), function("a___b"), structure("a___c"), function("___sys_sendmsg"), function("plain")), nil)
	require.NoError(t, err)
	for name, want := range map[string]int{"a": 1, "a___b": 2, "a___c": 1, "___sys_sendmsg": 1, "plain": 1, "": 0, "___": 0, "sys_sendmsg": 0, "absent": 0} {
		require.Len(t, slices.Collect(b.numbers(name)), want, name)
	}
	f, ok := b.Function("a___b")
	require.True(t, ok)
	require.Equal(t, "a___b", f.Name)
	_, ok = b.Function("a")
	require.False(t, ok)
}

// raw makes BTF of types as they are written, and of names.
func raw(names string, types ...uint32) []byte {
	le := binary.LittleEndian
	b := le.AppendUint16(nil, BTFMagic)
	b = append(b, 1, 0)
	for _, w := range []uint32{BTFHeaderLen, 0, uint32(4 * len(types)), uint32(4 * len(types)), uint32(len(names))} {
		b = le.AppendUint32(b, w)
	}
	for _, w := range types {
		b = le.AppendUint32(b, w)
	}
	return append(b, names...)
}

func TestBTFThatIsDamaged(t *testing.T) {
	pointer := []uint32{0, BTFPtr << 24, 1}
	good := raw("\x00", pointer...)
	_, err := ReadBTF(good, nil)
	require.NoError(t, err)
	for name, b := range map[string][]byte{
		"empty":            nil,
		"cut_header":       good[:BTFHeaderLen-1],
		"cut_types":        good[:len(good)-2],
		"other_magic":      append([]byte{0, 0}, good[2:]...),
		"big_endian":       append([]byte{0xeb, 0x9f}, good[2:]...),
		"no_names":         raw("", pointer...),
		"names_not_ended":  raw("\x00a", pointer...),
		"unknown_kind":     raw("\x00", 0, 31<<24, 0),
		"kind_0":           raw("\x00", 0, 0, 0),
		"members_cut":      raw("\x00", 0, BTFStruct<<24|0xffff, 8),
		"types_at_the_end": raw("\x00", 0, BTFPtr<<24),
		"too_many":         raw("\x00", make([]uint32, 0)...),
	} {
		if name == "too_many" {
			many := make([]uint32, 0, 3*(bounded.Types+1))
			for range bounded.Types + 1 {
				many = append(many, pointer...)
			}
			b = raw("\x00", many...)
		}
		_, err := ReadBTF(b, nil)
		require.ErrorIs(t, err, ErrBTF, name)
	}
	// A type that refers to none is void, and a name that is too long is dropped.
	long := "\x00" + strings.Repeat("x", bounded.TypeName) + "\x00"
	b, err := ReadBTF(raw(long, 1, BTFStruct<<24|1, 8, 2, 77, 0, 0xffffff, BTFPtr<<24, 1<<31), nil)
	require.NoError(t, err)
	require.Empty(t, b.Type(1).Name)
	require.Equal(t, None, b.Type(1).Members()[0].Type)
	require.Equal(t, None, b.Type(2).Target())
	for _, id := range []int{-1, 0, 3, 1 << 40} {
		require.Equal(t, None, b.Type(id))
		require.False(t, b.Has(id))
	}
}

// A bitfield of the older format has its width in the type of its member.
func TestOlderBitfields(t *testing.T) {
	b, err := ReadBTF(raw("\x00a\x00", 0, BTFInt<<24, 4, 5<<16|3, 1, BTFStruct<<24|1, 8, 1, 1, 32), nil)
	require.NoError(t, err)
	m, ok := b.Type(2).Member("a")
	require.True(t, ok)
	require.Equal(t, Member{Name: "a", Type: b.Type(1), Offset: 4, Bits: 3, Bit: 5}, m)
}
