package btfnames_test

import (
	"bytes"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/btfnames"
)

// The library's index drops what follows three underscores; the kernel does not.
func TestNamesAreWhole(t *testing.T) {
	number := &btf.Int{Name: "int", Size: 4}
	structure := func(name string) btf.Type {
		return &btf.Struct{Name: name, Size: 4, Members: []btf.Member{{Name: "m", Type: number}}}
	}
	function := func(name string) btf.Type {
		return &btf.Func{Name: name, Type: &btf.FuncProto{Return: number}, Linkage: btf.GlobalFunc}
	}
	b, err := btf.NewBuilder([]btf.Type{structure("a"), structure("a___b"), function("a___b"), structure("a___c"), function("___sys_sendmsg"), function("plain")}, nil)
	require.NoError(t, err)
	raw, err := b.Marshal(nil, nil)
	require.NoError(t, err)
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	require.NoError(t, err)
	var x btfnames.Index
	for name, want := range map[string]int{"a": 1, "a___b": 2, "a___c": 1, "___sys_sendmsg": 1, "plain": 1, "": 0, "___": 0, "sys_sendmsg": 0, "absent": 0} {
		list := x.Types(spec, name)
		require.Len(t, list, want, name)
		for _, one := range list {
			require.Equal(t, name, one.TypeName())
		}
	}
	fn, ok := btfnames.First[*btf.Func](x.Types(spec, "a___b"))
	require.True(t, ok)
	require.Equal(t, "a___b", fn.Name)
	_, ok = btfnames.First[*btf.Func](x.Types(spec, "a"))
	require.False(t, ok)
}
