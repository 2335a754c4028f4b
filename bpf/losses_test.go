package bpf_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab"
	"kprobelab/bpf"
	"kprobelab/bpf/answer"
	"kprobelab/bpf/losses"
	"kprobelab/internal/integration/dumps"
)

// loses is an object whose ring buffer has room for few records, and that gives none of each fourth call.
const loses = `
struct { __uint(type, RINGBUF); __uint(max_entries, 4096); } ring SEC(".maps");
u64 seen = 0, given = 0;
struct large { char text[1000]; };
static struct large large;
SEC("kprobe/vfs_unlink") int unlinks(void *ctx) {
	if (++seen % 4 == 0) return 0;
	if (ring_output(&ring, &large, sizeof(large), 1) == 0) given++;
	return 0;
}
`

// TestLossesOfARun: the ledger of a run is exact: what the programs count in their maps is the same.
func TestLossesOfARun(t *testing.T) {
	object := compiled(t, loses)
	var l *losses.Ledger
	eachOf(t, []string{"6.1.smp2", "newest"}, dumps.Twin, object, func(_ *testing.T, _ *kprobelab.Lab, o *bpf.Options) {
		o.Asked, o.Ledger = &losses.Asked{Losses: true}, func(got *losses.Ledger) { l = got }
		o.Workload = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo >/tmp/f; rm /tmp/f; done"
	}, func(t *testing.T, _ *kprobelab.Lab, a *answer.Object) {
		require.Empty(t, a.Run.Error)
		require.NotNil(t, l)
		require.Empty(t, l.Notes)
		require.Len(t, l.Programs, 1)
		p := &l.Programs[0]
		require.NoError(t, p.Check())
		given := ""
		for _, m := range a.Run.Maps {
			if m.Map == ".bss" {
				given = regexp.MustCompile(`"given":\d+`).FindString(string(m.Entries[0].Value))
			}
		}
		read := 0
		for _, e := range a.Run.Events {
			if e.Map == "ring" {
				read++
			}
		}
		n := func(stage string) uint64 { return *p.Stage(stage).N }
		require.EqualValues(t, 12, n(losses.Calls))
		require.EqualValues(t, 12, n(losses.Ran))
		require.EqualValues(t, 3, p.Stage(losses.Ran).Of(losses.Nothing))
		require.EqualValues(t, 9, n(losses.Wanted))
		require.Equal(t, n(losses.Wanted)-n(losses.Submitted), p.Stage(losses.Wanted).Of(losses.RingFull))
		require.Equal(t, given, "\"given\":"+decimal(n(losses.Submitted)))
		require.EqualValues(t, read, n(losses.Read))
		column := bpf.Column{Kernel: "k", Programs: a.Programs, Run: a.Run, Losses: l, Costs: "too many"}
		table := &bpf.Table{Columns: []bpf.Column{column}}
		var out bytes.Buffer
		require.NoError(t, table.Text(&out, false))
		require.Contains(t, out.String(), "\nk: what became of each call\nunlinks (program ")
		require.Contains(t, out.String(), "\nk: too many\n")
		require.Equal(t, 1, table.Code())
		table.Columns[0].Costs = ""
		require.Zero(t, table.Code())
	})
}

// TestLossesWantARun: without a run nothing becomes of calls.
func TestLossesWantARun(t *testing.T) {
	for _, a := range []*losses.Asked{{Losses: true}, {MaxCost: 1}, {Coverage: "x"}} {
		o := bpf.Options{Asked: a}
		require.ErrorIs(t, o.Check(), bpf.ErrNoRun)
		o.Command = "true"
		require.NoError(t, o.Check())
	}
	require.NoError(t, (&bpf.Options{}).Check())
}

// say prints its own name in a branch of a program: the line of source that has it ran as often as the name is printed.
const say = `
#define SAY(name) do { static const char text[] = name; trace_printk(text, sizeof(text)); } while (0)
`

// branching are tools with programs of several kinds, with loops, and with functions that are compiled and ones that are inlined.
var branching = map[string]string{
	"trampolines": say + `
static __attribute__((noinline)) int parity(u64 n)
{
	if (n & 1) {
		SAY("odd");
		return 1;
	}
	SAY("even");
	return 2;
}
u64 seen = 0, sum = 0;
SEC("fentry/vfs_unlink") int enters(void *ctx)
{
	u64 n = seen++;
	sum += parity(n);
	if (n > 100)
		SAY("never");
	#pragma clang loop unroll(disable)
	for (u64 i = 0; i < (n & 3); i++) {
		SAY("round");
		if (i + n == 4)
			SAY("four");
	}
	return 0;
}
SEC("fexit/vfs_unlink") int leaves(u64 *ctx)
{
	sum += parity(sum);
	if ((seen & 3) == 3)
		SAY("third");
	return 0;
}`,
	"returns": say + `
struct { __uint(type, HASH); __uint(max_entries, 8); __type(key, u32); __type(value, u64); } turns SEC(".maps");
static inline __attribute__((always_inline)) u64 *turn(u32 key)
{
	u64 zero = 0, *v = lookup(&turns, &key);
	if (!v) {
		SAY("new");
		update(&turns, &key, &zero, 0);
		v = lookup(&turns, &key);
	}
	return v;
}
SEC("kretprobe/vfs_unlink") int returns(void *ctx)
{
	u64 *v = turn(0);
	if (!v)
		return 1;
	switch ((*v)++ % 3) {
	case 0:
		SAY("zero");
		break;
	case 1:
		SAY("one");
		break;
	default:
		SAY("other");
	}
	return 0;
}
SEC("tracepoint/syscalls/sys_enter_unlinkat") int point(void *ctx)
{
	u64 *v = turn(1);
	if (!v)
		return 1;
	if (++*v & 1)
		SAY("left");
	else
		SAY("right");
	return 0;
}
SEC("tracepoint/syscalls/sys_enter_unlink") int point2(void *ctx)
{
	SAY("old");
	return 0;
}`,
}

// TestCoverageIsTheLogOfBranches: of tools of several kinds, each line ran as often as its bpf_printk has written.
func TestCoverageIsTheLogOfBranches(t *testing.T) {
	for name, text := range branching {
		t.Run(name, func(t *testing.T) {
			object := compiled(t, text)
			source := strings.Split(header+text, "\n")
			file := filepath.Join(t.TempDir(), "lines.info")
			var a *losses.Asked
			eachOf(t, []string{"6.1.smp2", "newest"}, dumps.Twin, object, func(_ *testing.T, _ *kprobelab.Lab, o *bpf.Options) {
				a = &losses.Asked{Coverage: file}
				o.Asked = a
				o.Workload = "for i in 1 2 3 4 5 6 7 8 9 10 11; do echo >/tmp/f; rm /tmp/f; done"
			}, func(t *testing.T, _ *kprobelab.Lab, got *answer.Object) {
				require.Empty(t, got.Run.Error)
				printed := map[string]int{}
				for _, e := range got.Run.Events {
					printed[e.Printed]++
				}
				require.NoError(t, a.Save())
				lcov, err := os.ReadFile(file)
				require.NoError(t, err)
				ran := map[string]string{}
				for _, m := range regexp.MustCompile(`(?m)^DA:(\d+),(\d+)$`).FindAllStringSubmatch(string(lcov), -1) {
					ran[m[1]] = m[2]
				}
				said := regexp.MustCompile(`SAY\("(\w+)"\)`)
				branches := 0
				for n, line := range source {
					m := said.FindStringSubmatch(line)
					if m == nil {
						continue
					}
					branches++
					require.Equal(t, decimal(uint64(printed[m[1]])), ran[decimal(uint64(n+1))], "%s, line %d: %v\n%s", m[1], n+1, printed, lcov)
				}
				require.Greater(t, branches, 5)
				require.Greater(t, len(printed), 4)
			})
		})
	}
}

func decimal(n uint64) string { return strconv.FormatUint(n, 10) }
