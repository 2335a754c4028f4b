package bpf_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// header declares the parts of libbpf's headers that the tests' programs use.
const header = `
typedef unsigned int u32; typedef unsigned long u64; typedef int s32;
#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) typeof(value) *name
enum { HASH = 1, ARRAY = 2, PROG_ARRAY = 3, PERF = 4, ARRAY_OF_MAPS = 12, SOCKMAP = 15, RINGBUF = 27 };
static void *(*lookup)(void *map, const void *key) = (void *)1;
static long (*update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*trace_printk)(const char *format, u32 size, ...) = (void *)6;
static u64 (*current)(void) = (void *)14;
static long (*comm)(void *to, u32 size) = (void *)16;
static long (*perf_output)(void *ctx, void *map, u64 flags, void *data, u64 size) = (void *)25;
static long (*ring_output)(void *map, void *data, u64 size, u64 flags) = (void *)130;
char LICENSE[] SEC("license") = "GPL";
`

// compiled is the object that clang makes of a program in C.
func compiled(t *testing.T, text string) []byte { return compiledFor(t, "bpfel", text) }

func compiledFor(t *testing.T, target, text string) []byte {
	clang, err := exec.LookPath("clang")
	if err != nil {
		t.Skip("no clang to compile a BPF program (apt install clang)")
	}
	dir := t.TempDir()
	source, file := filepath.Join(dir, "tool.bpf.c"), filepath.Join(dir, "tool.bpf.o")
	require.NoError(t, os.WriteFile(source, []byte(header+text), 0o600))
	out, err := exec.Command(clang, "-target", target, "-O2", "-g", "-c", source, "-o", file).CombinedOutput()
	require.NoError(t, err, string(out))
	object, err := os.ReadFile(file)
	require.NoError(t, err)
	return object
}
