package ctypes_test

import (
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/archive/ctypes"
	"kprobelab/internal/bounded"
)

// Structures lie in each other as deep as the bound says, not deeper.
func TestStructuresInStructures(t *testing.T) {
	table := func(depth int) (*ctypes.Columns, []string) {
		number := &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed}
		var in btf.Type = number
		for i := range depth {
			in = &btf.Struct{Name: "s" + string(rune('a'+i/26)) + string(rune('a'+i%26)), Size: 4, Members: []btf.Member{{Name: "m", Type: in}}}
		}
		f := &btf.Func{Name: "f", Linkage: btf.GlobalFunc, Type: &btf.FuncProto{Return: number, Params: []btf.FuncParam{{Name: "p", Type: &btf.Pointer{Target: in}}}}}
		b, err := btf.NewBuilder([]btf.Type{f}, nil)
		require.NoError(t, err)
		raw, err := b.Marshal(nil, nil)
		require.NoError(t, err)
		m, err := ctypes.NewMaker(raw)
		require.NoError(t, err)
		c := &ctypes.Columns{}
		m.Kernel().Write(c, []string{"f"}, nil)
		return c, []string{"f"}
	}
	c, known := table(bounded.ArchiveNesting + 1)
	_, err := ctypes.Read(c, nil, known)
	require.NoError(t, err)
	c, known = table(bounded.ArchiveNesting + 2)
	_, err = ctypes.Read(c, nil, known)
	require.ErrorContains(t, err, "structures lie too deep in each other")
}
