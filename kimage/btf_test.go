package kimage

import (
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"
)

// Rule: prototypes read as the kernel's headers declare them.
func TestProtoOfRealKernels(t *testing.T) {
	want := map[string]string{
		"vfs_read":               "ssize_t vfs_read(struct file *file, char *buf, size_t count, loff_t *pos)",
		"kstrtoull":              "int kstrtoull(const char *s, unsigned int base, long long unsigned int *res)",
		"gcd":                    "long unsigned int gcd(long unsigned int a, long unsigned int b)",
		"snprintf":               "int snprintf(char *buf, size_t size, const char *fmt, ...)",
		"schedule":               "void schedule(void)",
		"kthread_create_on_node": "struct task_struct *kthread_create_on_node(int (*threadfn)(void *), void *data, int node, const char *namefmt, ...)",
	}
	eachKernel(t, func(t *testing.T, kernel string, img *Image) {
		require.NoError(t, img.BTFError())
		for name, c := range want {
			p, ok := img.Proto(name)
			if !ok && kernel == "oracle510" {
				t.Logf("5.10's BTF has no %s", name)
				continue
			}
			require.True(t, ok, name)
			require.Equal(t, c, p.String())
		}
		p, ok := img.Proto("vfs_read")
		require.True(t, ok)
		require.Equal(t, Param{Name: "file", Type: "struct file *", Size: 8, Pointer: true}, p.Params[0])
		require.Equal(t, Param{Name: "count", Type: "size_t", Size: 8}, p.Params[2])
		require.Equal(t, Param{Type: "ssize_t", Size: 8, Signed: true}, p.Ret)
		if p, ok = img.Proto("kstrtoull"); ok {
			require.Equal(t, Param{Name: "base", Type: "unsigned int", Size: 4}, p.Params[1])
		}
		p, _ = img.Proto("schedule")
		require.Equal(t, Param{Type: "void"}, p.Ret)
		_, ok = img.Proto("no_such_function")
		require.False(t, ok)
	})
}

func TestProtoWithoutBTF(t *testing.T) {
	img := guestImage(t, nil)
	_, ok := img.Proto("anything")
	if img.section(".BTF") == nil {
		require.ErrorIs(t, img.BTFError(), ErrNoBTF)
		require.False(t, ok)
	}
}

func TestProtoOfDamagedBTF(t *testing.T) {
	img, err := FromBytes("bad", testELF(etExec,
		testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: testBase, data: make([]byte, 64)},
		testSection{name: ".BTF", typ: 1, flags: shfAlloc, addr: testBase + 0x1000, data: []byte("\x9f\xeb\x01\x00not really")}), nil)
	require.NoError(t, err)
	_, ok := img.Proto("f")
	require.False(t, ok)
	require.ErrorIs(t, img.BTFError(), ErrFormat)
}

// BenchmarkProtoFirst is the first question, which parses the BTF of Debian's
// 6.12.
func BenchmarkProtoFirst(b *testing.B) {
	img := bootedImage(b, "oracle612")
	for b.Loop() {
		fresh := &Image{name: img.name, sections: img.sections, other: img.other}
		if _, ok := fresh.Proto("vfs_read"); !ok {
			b.Fatal("vfs_read has a prototype")
		}
	}
}

// builtBTF is the BTF of one function f with parameters of those types.
func builtBTF(t *testing.T, ret btf.Type, params ...btf.FuncParam) *Image {
	t.Helper()
	b, err := btf.NewBuilder([]btf.Type{&btf.Func{Name: "f", Type: &btf.FuncProto{Return: ret, Params: params}, Linkage: btf.GlobalFunc}}, nil)
	require.NoError(t, err)
	raw, err := b.Marshal(nil, nil)
	require.NoError(t, err)
	img, err := FromBytes("built", testELF(etExec,
		testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: testText, data: make([]byte, 64)},
		testSection{name: ".BTF", typ: 1, flags: shfAlloc, addr: testTable, data: raw}), nil)
	require.NoError(t, err)
	return img
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
