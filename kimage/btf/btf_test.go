package btf

import (
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// builtBTF is the BTF of one function f with parameters of those types.
func builtBTF(t *testing.T, ret btf.Type, params ...btf.FuncParam) *Types {
	t.Helper()
	b, err := btf.NewBuilder([]btf.Type{&btf.Func{Name: "f", Type: &btf.FuncProto{Return: ret, Params: params}, Linkage: btf.GlobalFunc}}, nil)
	require.NoError(t, err)
	raw, err := b.Marshal(nil, nil)
	require.NoError(t, err)
	types, err := New(raw, nil)
	require.NoError(t, err)
	return types
}

// Rule: every kind of type is written as C writes it.
func TestProtoTypes(t *testing.T) {
	char := &btf.Int{Name: "char", Size: 1, Encoding: btf.Signed}
	long := &btf.Int{Name: "long int", Size: 8, Encoding: btf.Signed}
	file := &btf.Struct{Name: "file", Size: 8}
	callback := &btf.Pointer{Target: &btf.FuncProto{Return: long, Params: []btf.FuncParam{{Name: "x", Type: char}, {Type: &btf.Void{}}}}}
	for c, typ := range map[string]btf.Type{
		"char p":                   char,
		"const char *p":            &btf.Pointer{Target: &btf.Const{Type: char}},
		"char *const p":            &btf.Const{Type: &btf.Pointer{Target: char}},
		"char **p":                 &btf.Pointer{Target: &btf.Pointer{Target: char}},
		"volatile long int *p":     &btf.Pointer{Target: &btf.Volatile{Type: long}},
		"struct file *p":           &btf.Pointer{Target: file},
		"struct {...} *p":          &btf.Pointer{Target: &btf.Struct{Size: 4}},
		"union u p":                &btf.Union{Name: "u", Size: 4},
		"enum e p":                 &btf.Enum{Name: "e", Size: 4},
		"void *p":                  &btf.Pointer{Target: &btf.Void{}},
		"long int (*p)(char, ...)": callback,
		"void (*p)(void)":          &btf.Pointer{Target: &btf.FuncProto{Return: &btf.Void{}}},
		"char (*p)[16]":            &btf.Pointer{Target: &btf.Array{Index: long, Type: char, Nelems: 16}},
		"struct user_space *p":     &btf.Pointer{Target: &btf.TypeTag{Value: "user", Type: &btf.Fwd{Name: "user_space", Kind: btf.FwdStruct}}},
		"size_t p":                 &btf.Typedef{Name: "size_t", Type: long},
		"char *restrict p":         &btf.Restrict{Type: &btf.Pointer{Target: char}},
	} {
		t.Run(c, func(t *testing.T) {
			p, ok := builtBTF(t, &btf.Void{}, btf.FuncParam{Name: "p", Type: typ}).Proto("f")
			require.True(t, ok)
			require.Equal(t, "void f("+c+")", p.String())
		})
	}
	p, _ := builtBTF(t, long).Proto("f")
	require.Equal(t, "long int f(void)", p.String())
	require.Equal(t, Param{Type: "long int", Size: 8, Signed: true}, p.Ret)
	p, _ = builtBTF(t, long, btf.FuncParam{Name: "s", Type: callback}, btf.FuncParam{Type: &btf.Void{}}).Proto("f")
	require.Equal(t, "long int f(long int (*s)(char, ...), ...)", p.String())
	require.True(t, p.Variadic)
	require.Len(t, p.Params, 1)
	require.True(t, p.Params[0].Pointer)
	_, ok := builtBTF(t, long).Proto("long int")
	require.False(t, ok, "a type is no function")
}

func TestProtoTakes(t *testing.T) {
	word := Param{Type: "int"}
	for name, c := range map[string]struct {
		p    Proto
		n    int
		want string
	}{
		"as_many":        {Proto{Name: "f", Ret: word, Params: []Param{word, word}}, 2, ""},
		"too_few":        {Proto{Name: "f", Ret: word, Params: []Param{word, word}}, 1, "f takes 2 arguments, not 1: int f(int, int)"},
		"too_many":       {Proto{Name: "f", Ret: word, Params: []Param{word}}, 2, "f takes 1 argument, not 2: int f(int)"},
		"none":           {Proto{Name: "f", Ret: word}, 1, "f takes no argument, not 1: int f(void)"},
		"variadic":       {Proto{Name: "f", Ret: word, Params: []Param{word}, Variadic: true}, 5, ""},
		"variadic_short": {Proto{Name: "f", Ret: word, Params: []Param{word}, Variadic: true}, 0, "f takes at least 1 argument, not 0: int f(int, ...)"},
	} {
		err := c.p.Takes(c.n)
		if c.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.EqualError(t, err, c.want, name)
	}
}
