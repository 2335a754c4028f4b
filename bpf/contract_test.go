package bpf_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/bpf"
	"kprobelab/bpf/answer"
	"kprobelab/internal/bounded"
	"kprobelab/internal/integration/dumps/runs"
)

// unfinished is an object as libbpf-tools have them: it does not load before its userland has completed it.
const unfinished = `
enum way { FIRST, SECOND = 7 };
struct filter { int pid; enum way way; char comm[16]; struct { long deep; } in; };
const volatile u32 size = 0;
const volatile struct filter filter = {};
const volatile unsigned char list[4] = {};
int counter = 5;
struct { __uint(type, HASH); __uint(max_entries, 0); __type(key, int); __type(value, long); } counts SEC(".maps");
struct { __uint(type, ARRAY_OF_MAPS); __uint(max_entries, 1); __uint(key_size, 4); __uint(value_size, 4); } outer SEC(".maps");
SEC("kprobe/vfs_read") int count(void *ctx) { int k = 0; long *v = lookup(&counts, &k); if (v) *v += counter; return 0; }
// the loop has an end when size has one
SEC("kprobe/vfs_write") int loop(void *ctx) { int n = 0; for (u32 i = 0; i != size - 1; i++) n += i; return n; }
SEC("kprobe/vfs_open") int chosen(void *ctx) {
	char buf[4];
	if (filter.pid != 42 || filter.way != SECOND || filter.comm[1] != 'h' || filter.in.deep != -3 || list[2] != 9) return *(volatile int *)(0UL);
	return 0;
}
SEC("kprobe/vfs_fsync") int maps(void *ctx) { int k = 0; void *m = lookup(&outer, &k); if (m) lookup(m, &k); return 0; }
SEC("kprobe") int nowhere(void *ctx) { return 0; }
SEC("fentry") int enters(void *ctx) { return 0; }
SEC("kprobe/no_such_function") int absent(void *ctx) { return 0; }
SEC("?kprobe/no_such_function") int maybe(void *ctx) { return 0; }
SEC("kprobe/vfs_unlink") int never(void *ctx) { return *(volatile int *)(0UL); }
__attribute__((noinline)) int part(int x) { asm volatile("" : "+r"(x)); return x + 1; }
SEC("kprobe/vfs_mkdir") int whole(void *ctx) { return part(2); }
SEC("freplace") int replaces(int x) { return x - 1; }
`

const completed = `
# as the tool's main does it
maps:
  counts: {entries: 16}
  outer: {inner: {map: counts}}
constants:
  size: 0x20
  filter: {pid: 42, way: SECOND, comm: sh, in: {deep: -3}}
  list: [0, 0, 9]
programs:
  nowhere: {attach: vfs_rmdir}
  enters: {attach: vfs_read}
  absent: {optional: true}
  never: {load: false}
  replaces: {of: whole, attach: part}
`

// TestContracts: an object that its tool completes loads as the contract says, and not without it.
func TestContracts(t *testing.T) {
	object := compiled(t, unfinished)
	file := filepath.Join(t.TempDir(), "tool.yaml")
	require.NoError(t, os.WriteFile(file, []byte(completed), 0o600))
	bad := func(a *answer.Object) (names []string) {
		for _, p := range a.Programs {
			if p.Word() != "attaches" {
				names = append(names, p.Name+": "+p.Word())
			}
		}
		return names
	}
	dump := runs.File(t, "6.1")
	table, err := bpf.Ask(t.Context(), "x.o", object, []string{"6.1"}, func(context.Context, string) (string, error) { return dump, nil }, options(t))
	require.NoError(t, err)
	require.Equal(t, []string{
		"absent: not attached", "chosen: refused", "enters: refused", "loop: refused", "maps: refused", "maybe: not attached, optional",
		"never: refused", "nowhere: loads", "replaces: not asked",
	}, bad(&answer.Object{Programs: table.Columns[0].Programs}))
	eachKernel(t, object, func(_ *testing.T, _ *kprobelab.Lab, o *bpf.Options) { require.NoError(t, o.SetContract(file)) }, func(t *testing.T, l *kprobelab.Lab, a *answer.Object) {
		require.Equal(t, []string{"absent: not attached, optional", "maybe: not attached, optional"}, bad(a))
		for _, p := range a.Programs {
			require.NotEqual(t, "never", p.Name)
			require.False(t, p.Bad(), p.Name)
		}
	})
}

// TestFlagsOfALoad: an access that is not aligned is refused by strict alignment alone.
func TestFlagsOfALoad(t *testing.T) {
	object := compiled(t, `
struct { __uint(type, ARRAY); __uint(max_entries, 1); __type(key, int); __type(value, u64); } cells SEC(".maps");
SEC("kprobe/vfs_read") int odd(void *ctx) { int k = 0; void *v = lookup(&cells, &k); if (v) asm volatile("*(u32 *)(%0 + 1) = %1" :: "r"(v), "r"(1L) : "memory"); return 0; }
`)
	file := filepath.Join(t.TempDir(), "tool.yaml")
	for flags, loads := range map[string]bool{"[]": true, "[test_state_freq]": true, "[strict_alignment, test_state_freq]": false} {
		require.NoError(t, os.WriteFile(file, []byte("programs: {odd: {flags: "+flags+"}}"), 0o600))
		eachKernel(t, object, func(_ *testing.T, _ *kprobelab.Lab, o *bpf.Options) { require.NoError(t, o.SetContract(file)) }, func(t *testing.T, _ *kprobelab.Lab, a *answer.Object) {
			require.Equal(t, loads, a.Programs[0].Loads, "%s: %s", flags, a.Programs[0].Error)
		})
	}
}

// TestContractsThatAreNone: one sentence that names what is wrong.
func TestContractsThatAreNone(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "contract")
	for text, want := range map[string]string{
		"maps: [1]":                  "",
		"nosuch: {}":                 "nosuch",
		"maps: {a: {entries: -1}}":   "",
		"maps: {a: {entires: 1}}":    "entires",
		"a: &x 1\nb: *x":             "anchors",
		"maps: {":                    "",
		"\x00":                       "",
		"- 1":                        "",
		strings.Repeat("[", 100_000): "in each other",
		"programs: {a: {load: 7}}":   "",
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		err := new(bpf.Options).SetContract(file)
		require.ErrorIs(t, err, bpf.ErrContract, text)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
	require.NoError(t, os.Truncate(file, bounded.BPFContract+1))
	require.Error(t, new(bpf.Options).SetContract(file))
	object := compiled(t, unfinished)
	dump := runs.File(t, "6.1")
	for text, want := range map[string]string{
		"maps: {nosuch: {entries: 1}}":                       "no map nosuch",
		"maps: {counts: {inner: {type: hash}}}":              "counts is no map of maps",
		"maps: {outer: {inner: {type: hush}}}":               `"hush" is none`,
		"maps: {counts: {record: nosuch}}":                   "no type nosuch",
		"constants: {nosuch: 1}":                             "no variable nosuch",
		"constants: {size: 0x100000000}":                     "is no number of type u32",
		"constants: {filter: {nosuch: 1}}":                   "struct filter has no member nosuch",
		"constants: {filter: {comm: 'a text that is long'}}": "a text of 19 bytes",
		"constants: {list: [1, 2, 3, 4, 5]}":                 "a list of up to 4 values",
		"programs: {nosuch: {}}":                             "no program nosuch",
		"programs: {whole: {of: whole}}":                     "to itself",
		"programs: {whole: {flags: [nosuch]}}":               `the flag "nosuch" is none`,
	} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		o := options(t)
		require.NoError(t, o.SetContract(file))
		table, err := bpf.Ask(t.Context(), "x.o", object, []string{"6.1"}, func(context.Context, string) (string, error) { return dump, nil }, o)
		require.Nil(t, table)
		require.ErrorIs(t, err, bpf.ErrContract)
		require.ErrorContains(t, err, want)
	}
}
