package bpf_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/bpf"
	"kprobelab/bpf/answer"
	"kprobelab/internal/integration/dumps"
)

// talking is an object that tells each unlink in every way: records, a line, maps.
const talking = `
enum what { UNLINK = 3 };
struct event { u32 number; s32 less; enum what what; char comm[16]; struct { unsigned char a : 3, b : 5; }; void *at; };
struct { __uint(type, PERF); __uint(key_size, 4); __uint(value_size, 4); } perf SEC(".maps");
struct { __uint(type, RINGBUF); __uint(max_entries, 4096); } ring SEC(".maps");
struct { __uint(type, HASH); __uint(max_entries, 8); __type(key, struct event); __type(value, u64); } counts SEC(".maps");
struct { __uint(type, ARRAY); __uint(max_entries, 4); __type(key, u32); __type(value, s32); } cells SEC(".maps");
u32 total = 0;
SEC("kprobe/vfs_unlink") int unlinks(void *ctx) {
	struct event e = { .number = ++total, .less = -1, .what = UNLINK, .a = 5, .b = 9, .at = (void *)0x10 };
	u32 two = 2; s32 v = -total;
	u64 one = 7;
	char format[] = "unlink %d";
	comm(e.comm, sizeof(e.comm));
	perf_output(ctx, &perf, 0xffffffffUL, &e, sizeof(e));
	ring_output(&ring, &v, sizeof(v), 0);
	update(&counts, &e, &one, 0);
	update(&cells, &two, &v, 0);
	trace_printk(format, sizeof(format), total);
	return 0;
}
SEC("?kprobe/vfs_unlink") int never(void *ctx) { total += 100; return 0; }
`

// TestRuns: what programs tell of a workload's three calls comes as it came, with the object's types.
func TestRuns(t *testing.T) {
	object := compiled(t, talking)
	file := filepath.Join(t.TempDir(), "contract")
	require.NoError(t, os.WriteFile(file, []byte("maps: {perf: {record: event}, ring: {record: s32}}"), 0o600))
	eachKernel(t, object, func(_ *testing.T, _ *kprobelab.Lab, o *bpf.Options) {
		require.NoError(t, o.SetContract(file))
		o.Workload = "for i in 1 2 3; do echo >/tmp/f; rm /tmp/f; done; echo done"
	}, func(t *testing.T, l *kprobelab.Lab, a *answer.Object) {
		r := a.Run
		require.NotNil(t, r)
		require.Empty(t, r.Error)
		require.Equal(t, "done\n", r.Output)
		require.Equal(t, []string{"unlinks"}, r.Attached)
		var records, numbers, lines []string
		for _, e := range r.Events {
			switch e.Map {
			case "perf":
				records = append(records, string(e.Value))
			case "ring":
				numbers = append(numbers, string(e.Value))
			default:
				lines = append(lines, e.Printed)
			}
		}
		record := func(n string) string {
			return `{"number":` + n + `,"less":-1,"what":"UNLINK","comm":"rm","a":5,"b":9,"at":"0x10"}`
		}
		require.Equal(t, []string{record("1"), record("2"), record("3")}, records)
		require.Equal(t, []string{"-1", "-2", "-3"}, numbers)
		require.Equal(t, []string{"unlink 1", "unlink 2", "unlink 3"}, lines)
		maps := map[string]answer.Contents{}
		for _, m := range r.Maps {
			maps[m.Map] = m
		}
		require.Len(t, maps["counts"].Entries, 3)
		require.Equal(t, "7", string(maps["counts"].Entries[0].Value))
		require.Equal(t, []answer.Entry{{Key: json.RawMessage("2"), Value: json.RawMessage("-3")}}, maps["cells"].Entries)
		require.Equal(t, 3, maps["cells"].Zero)
		require.Equal(t, `{"total":3}`, string(maps[".bss"].Entries[0].Value))
		table := &bpf.Table{Columns: []bpf.Column{{Kernel: "k", Programs: a.Programs, Run: r}}}
		var out bytes.Buffer
		require.NoError(t, table.Text(&out, false))
		for _, want := range []string{"  | done\n", "  perf: " + record("2") + "\n", "  printk: unlink 3\n", "  cells[2] = -3\n", `  .bss = {"total":3}`} {
			require.Contains(t, out.String(), want)
		}
	})
}

// TestRunsWithoutEnd: a workload that writes without end, and a large map, do not fill the host's memory.
func TestRunsWithoutEnd(t *testing.T) {
	object := compiled(t, `
		struct { __uint(type, ARRAY); __uint(max_entries, 100000); __type(key, u32); __type(value, u64); } large SEC(".maps");
		SEC("kprobe/vfs_unlink") int fills(void *ctx) {
			u32 k = 0, last = 99999; u64 v = 1;
			update(&large, &k, &v, 0); update(&large, &last, &v, 0);
			for (int i = 0; i < 100; i++) { char format[] = "x"; trace_printk(format, sizeof(format)); }
			return 0;
		}`)
	eachOf(t, []string{"6.1"}, dumps.Twin, object, func(_ *testing.T, _ *kprobelab.Lab, o *bpf.Options) {
		o.Workload = "echo >/tmp/f; rm /tmp/f; dd if=/dev/zero bs=1M count=2 2>/dev/null; exit 3"
	}, func(t *testing.T, _ *kprobelab.Lab, a *answer.Object) {
		require.Empty(t, a.Run.Error)
		require.Equal(t, 3, a.Run.Exit)
		require.Len(t, a.Run.Output, 1<<20)
		require.Len(t, a.Run.Maps, 1)
		require.Len(t, a.Run.Maps[0].Entries, 1)
		require.Equal(t, 100000-1<<16, a.Run.Maps[0].More)
		require.Len(t, a.Run.Events, 100)
		require.Equal(t, 1, (&bpf.Table{Columns: []bpf.Column{{Run: a.Run}}}).Code())
		require.NotContains(t, strings.ToLower(a.Run.Output), "error")
	})
}
