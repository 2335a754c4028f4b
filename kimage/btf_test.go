package kimage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/kimage/btf"
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
		require.Equal(t, btf.Param{Name: "file", Type: "struct file *", Size: 8, Pointer: true}, p.Params[0])
		require.Equal(t, btf.Param{Name: "count", Type: "size_t", Size: 8}, p.Params[2])
		require.Equal(t, btf.Param{Type: "ssize_t", Size: 8, Signed: true}, p.Ret)
		if p, ok = img.Proto("kstrtoull"); ok {
			require.Equal(t, btf.Param{Name: "base", Type: "unsigned int", Size: 4}, p.Params[1])
		}
		p, _ = img.Proto("schedule")
		require.Equal(t, btf.Param{Type: "void"}, p.Ret)
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
