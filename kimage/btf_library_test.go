package kimage

import (
	"bytes"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"kprobelab/internal/ctype"
)

// TestBTFAsALibraryReadsIt compares each type of real kernels with cilium/ebpf's reading.
func TestBTFAsALibraryReadsIt(t *testing.T) {
	eachKernel(t, func(t *testing.T, _ string, img *Image) {
		raw, _ := img.BTF()
		spec, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
		require.NoError(t, err)
		b, err := ctype.ReadBTF(raw, nil)
		require.NoError(t, err)
		count, functions := 0, 0
		for want, err := range spec.All() {
			require.NoError(t, err)
			id, err := spec.TypeID(want)
			require.NoError(t, err)
			if f, ok := want.(*btf.Func); ok {
				have, ok := b.FunctionAt(int(id))
				require.True(t, ok)
				require.Equal(t, f.Name, have.Name)
				sameType(t, spec, f.Type, have.Proto)
				functions++
				continue
			}
			count++
			switch want.(type) {
			case *btf.Datasec, *btf.Var:
				continue // they are no types
			case *btf.TypeTag:
				continue // it is passed over
			}
			sameType(t, spec, want, b.Type(int(id)))
		}
		require.Greater(t, count, 10_000)
		require.Greater(t, functions, 1_000)
	})
}

// sameType compares one type, and which types it leads to.
func sameType(t *testing.T, spec *btf.Spec, want btf.Type, have *ctype.Type) {
	t.Helper()
	leads := func(want btf.Type, have *ctype.Type) {
		t.Helper()
		for tag, ok := want.(*btf.TypeTag); ok; tag, ok = want.(*btf.TypeTag) {
			want = tag.Type
		}
		if _, void := want.(*btf.Void); void {
			require.Equal(t, ctype.None, have)
			return
		}
		id, err := spec.TypeID(want)
		require.NoError(t, err)
		require.Equal(t, int(id), have.ID)
	}
	if n, err := btf.Sizeof(want); err == nil {
		if _, void := want.(*btf.Void); !void {
			require.EqualValues(t, n, have.Size(), "%v", want)
		}
	}
	members := func(list []btf.Member) {
		require.Equal(t, want.TypeName(), have.Name)
		got := have.Members()
		require.Len(t, got, len(list))
		for i, m := range list {
			require.Equal(t, m.Name, got[i].Name)
			require.EqualValues(t, m.Offset, 8*got[i].Offset+int64(got[i].Bit), "%v.%s", want, m.Name)
			require.EqualValues(t, m.BitfieldSize, got[i].Bits)
			leads(m.Type, got[i].Type)
		}
	}
	switch u := want.(type) {
	case *btf.Int:
		require.Equal(t, ctype.Base, have.Kind)
		require.Equal(t, u.Name, have.Name)
		require.Equal(t, u.Encoding&btf.Signed != 0, have.Signed)
	case *btf.Pointer:
		require.Equal(t, ctype.Pointer, have.Kind)
		leads(u.Target, have.Target())
	case *btf.Array:
		require.EqualValues(t, u.Nelems, have.Count)
		leads(u.Type, have.Target())
	case *btf.Struct:
		require.Equal(t, ctype.Struct, have.Kind)
		members(u.Members)
	case *btf.Union:
		require.Equal(t, ctype.Union, have.Kind)
		members(u.Members)
	case *btf.Enum:
		got := have.Enumerators()
		require.Len(t, got, len(u.Values))
		for i, v := range u.Values {
			require.Equal(t, ctype.Enumerator{Name: v.Name, Value: int64(v.Value)}, got[i])
		}
	case *btf.Fwd:
		require.True(t, have.Incomplete)
		require.Equal(t, u.Kind == btf.FwdUnion, have.Kind == ctype.Union)
	case *btf.Typedef:
		require.Equal(t, u.Name, have.Name)
		leads(u.Type, have.Target())
	case *btf.Const:
		require.Equal(t, "const", have.Name)
		leads(u.Type, have.Target())
	case *btf.Volatile:
		require.Equal(t, "volatile", have.Name)
		leads(u.Type, have.Target())
	case *btf.FuncProto:
		got := have.Params()
		list := u.Params
		if have.Variadic {
			list = list[:len(list)-1]
		}
		require.Len(t, got, len(list))
		for i, p := range list {
			require.Equal(t, p.Name, got[i].Name)
			leads(p.Type, got[i].Type)
		}
		leads(u.Return, have.Target())
	}
}
