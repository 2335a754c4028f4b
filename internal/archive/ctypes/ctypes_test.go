package ctypes_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/internal/archive/ctypes"
	"kprobelab/kimage"
	kbtf "kprobelab/kimage/btf"
)

// kernelBTF returns the BTF of the guest kernel or, if KERNEL names an image, of that image.
func kernelBTF(t testing.TB) []byte {
	open := func() (*kimage.Image, error) { return kimage.FromBytes("guest", kprobelab.GuestELF(), nil) }
	if name := os.Getenv("KERNEL"); name != "" {
		open = func() (*kimage.Image, error) { return kimage.Open(name, nil) }
	}
	img, err := open()
	require.NoError(t, err)
	raw, _ := img.BTF()
	require.NotEmpty(t, raw)
	return raw
}

// again is the BTF after it was a table and columns.
func again(t testing.TB, raw []byte, known []string) ([]byte, *ctypes.Table) {
	m, err := ctypes.NewMaker(raw)
	require.NoError(t, err)
	var c ctypes.Columns
	m.Kernel().Write(&c, known, nil)
	back, err := ctypes.Read(&c, nil, known)
	require.NoError(t, err)
	for i, left := range c {
		require.Empty(t, left, ctypes.ColumnNames[i])
	}
	var w ctypes.Writer
	return w.Kernel(back), back
}

func load(t testing.TB, raw []byte) *kbtf.Types {
	types, err := kbtf.New(raw, nil)
	require.NoError(t, err)
	return types
}

func functions(t testing.TB, raw []byte) map[string]int {
	list := map[string]int{}
	spec := loadSpec(t, raw)
	for typ, err := range spec.All() {
		require.NoError(t, err)
		if f, ok := typ.(*btf.Func); ok && f.Name != "" {
			id, err := spec.TypeID(f)
			require.NoError(t, err)
			if _, again := list[f.Name]; !again {
				list[f.Name] = int(id)
			}
		}
	}
	return list
}

// like compares types with their parts; seen has the pairs that were compared.
type like struct {
	testing.TB
	seen map[[2]kbtf.Type]bool
}

func (l like) same(a, b kbtf.Type, where string) {
	if l.seen[[2]kbtf.Type{a, b}] {
		return
	}
	l.seen[[2]kbtf.Type{a, b}] = true
	size1, signed1, int1 := a.Int()
	size2, signed2, int2 := b.Int()
	require.Equal(l, int1, int2, where)
	require.Equal(l, size1, size2, where)
	require.Equal(l, signed1, signed2, where)
	require.Equal(l, a.Char(), b.Char(), where)
	require.Equal(l, a.Composite(), b.Composite(), where)
	next1, ok1 := a.Target()
	next2, ok2 := b.Target()
	require.Equal(l, ok1, ok2, where)
	if ok1 {
		l.same(next1, next2, where+" *")
	}
	next1, ok1 = a.Elem()
	next2, ok2 = b.Elem()
	require.Equal(l, ok1, ok2, where)
	if ok1 {
		l.same(next1, next2, where+" []")
	}
}

// Rule: every function keeps its number, the names of its parameters and their types,
// and every structure its members and their offsets.
func TestWhatIsAskedIsKept(t *testing.T) {
	raw := kernelBTF(t)
	ids := functions(t, raw)
	var known []string
	for name := range ids {
		if len(known) < len(ids)/2 {
			known = append(known, name, "data_"+name)
		}
	}
	out, table := again(t, raw, known)
	before, after := load(t, raw), load(t, out)
	l := like{t, map[[2]kbtf.Type]bool{}}
	require.NotEmpty(t, ids)
	for name, id := range ids {
		got, ok := table.FuncID(name)
		require.True(t, ok, name)
		require.Equal(t, id, got, name)
		p1, ok1 := before.Proto(name)
		p2, ok2 := after.Proto(name)
		require.Equal(t, ok1, ok2, name)
		require.Equal(t, p1.Variadic, p2.Variadic, name)
		require.Equal(t, p1.Ret.Size, p2.Ret.Size, name)
		require.Equal(t, len(p1.Params), len(p2.Params), name)
		t1, r1, _ := before.ProtoTypes(name)
		t2, r2, _ := after.ProtoTypes(name)
		l.same(r1, r2, name)
		for i := range p1.Params {
			require.Equal(t, p1.Params[i].Name, p2.Params[i].Name, name)
			require.Equal(t, p1.Params[i].Size, p2.Params[i].Size, name)
			l.same(t1[i], t2[i], name)
		}
	}
	_, ok := table.FuncID("no_such_function")
	require.False(t, ok)
	structs := 0
	for typ, err := range loadSpec(t, raw).All() {
		require.NoError(t, err)
		s, ok := typ.(*btf.Struct)
		if !ok || s.Name == "" {
			continue
		}
		s1, ok1 := before.Struct(s.Name)
		s2, ok2 := after.Struct(s.Name)
		require.Equal(t, ok1, ok2, s.Name)
		if !ok1 {
			continue
		}
		structs++
		for _, m := range s.Members {
			m1, ok1 := s1.Member(m.Name)
			m2, ok2 := s2.Member(m.Name)
			require.Equal(t, ok1, ok2, s.Name+"."+m.Name)
			require.Equal(t, m1.Offset, m2.Offset, s.Name+"."+m.Name)
			require.Equal(t, m1.Bits, m2.Bits, s.Name+"."+m.Name)
			l.same(m1.Type, m2.Type, s.Name+"."+m.Name)
		}
	}
	require.NotZero(t, structs)
	for id := range 20 {
		t1, ok1 := before.TypeByID(id)
		t2, ok2 := after.TypeByID(id)
		if ok1 && id <= 16 {
			require.True(t, ok2, id)
			l.same(t1, t2, "first types")
		}
	}
	t.Logf("%d functions, %d structures", len(ids), structs)
}

func loadSpec(t testing.TB, raw []byte) *btf.Spec {
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(raw))
	require.NoError(t, err)
	return spec
}

// Rule: columns that are damaged are an error or other types, and nothing worse.
func FuzzRead(f *testing.F) {
	m, err := ctypes.NewMaker(kernelBTF(f))
	require.NoError(f, err)
	var c ctypes.Columns
	m.Kernel().Write(&c, nil, nil)
	for i := range c {
		f.Add(i, 0, []byte{0xff})
		f.Add(i, 1, []byte{0, 0, 1})
	}
	f.Add(0, 0, []byte{})
	f.Fuzz(func(t *testing.T, column, at int, b []byte) {
		d := c
		if column >= 0 && column < len(d) && at >= 0 && at <= len(d[column]) {
			d[column] = append(append([]byte{}, d[column][:at]...), b...)
		}
		table, err := ctypes.Read(&d, nil, nil)
		if err != nil {
			require.ErrorIs(t, err, ctypes.ErrFormat)
			return
		}
		var w ctypes.Writer
		types, err := kbtf.New(w.Kernel(table), nil)
		if err == nil {
			types.Proto("vfs_read")
			types.Struct("task_struct")
		}
	})
}
