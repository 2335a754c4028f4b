package filter

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/errno"
	"kprobelab/internal/tracing/event"
)

// asked returns the two events whose filters testdata has from booted kernels.
func asked(rules *event.Filters) map[string]*event.Format {
	return map[string]*event.Format{
		"e": {Common: event.Common(), Filters: rules, Fields: []event.Field{
			{Name: "__probe_ip", Type: "unsigned long", Offset: 8, Size: 8},
			{Name: "n", Type: "u32", Offset: 16, Size: 4},
			{Name: "s", Type: "__data_loc char[]", Offset: 20, Size: 4, Signed: true, Kind: event.KindString},
			{Name: "h", Type: "u64", Offset: 24, Size: 8},
			{Name: "t", Type: "s8", Offset: 32, Size: 1, Signed: true},
			{Name: "b", Type: "u8", Offset: 33, Size: 1},
			{Name: "arr", Type: "u8[4]", Offset: 34, Size: 4, Kind: event.KindArray, Len: 4},
		}},
		"f": {Common: event.Common(), Filters: rules, Fields: []event.Field{
			{Name: "__probe_func", Type: "unsigned long", Offset: 8, Size: 8},
			{Name: "__probe_ret_ip", Type: "unsigned long", Offset: 16, Size: 8},
			{Name: "v", Type: "u64", Offset: 24, Size: 8},
		}},
	}
}

// Functions of the kernel in these filters.
const (
	readFrom, readTo = 0x1000, 0x1030
	textFrom         = 0xffffffff81000000
)

// newer returns the filter features of 6.6 and later, with two CPUs and a few symbols.
func newer() *event.Filters {
	symbols := map[string]uint64{"vfs_read": readFrom, "ksys_read": 0x2000, "jiffies": 0x3000}
	return &event.Filters{
		Functions: true, CPUSets: true, Stack: true, CPUs: 2,
		Lookup: func(name string) (uint64, bool) { at, ok := symbols[name]; return at, ok },
		Bounds: func(at uint64) (from, to uint64, ok bool) {
			if at == textFrom || at == 0x2000 || at == 0x3000 {
				return at, at + 0x30, true
			}
			return readFrom, readTo, readFrom <= at && at < readTo
		},
	}
}

// TestBootedKernelsFilters: the errno, the message and its place equal the booted kernels', for
// each recorded text.
func TestBootedKernelsFilters(t *testing.T) {
	strict := newer()
	strict.RefuseOpenEnd = true
	for release, rules := range map[string]*event.Filters{"5.10.223": {}, "6.1.176": {}, "6.12.118": strict} {
		t.Run(release, func(t *testing.T) {
			data, err := os.ReadFile("testdata/" + release + ".txt")
			require.NoError(t, err)
			events, n := asked(rules), 0
			for line := range strings.Lines(string(data)) {
				if strings.HasPrefix(line, "#") {
					continue
				}
				w := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
				require.Len(t, w, 5, line)
				text, err := strconv.Unquote(w[1])
				require.NoError(t, err)
				want, err := strconv.Atoi(w[2])
				require.NoError(t, err)
				place, err := strconv.Atoi(w[4])
				require.NoError(t, err)
				_, err = Compile(strings.TrimRight(text, " "), events[w[0]])
				n++
				if want == 0 {
					require.NoError(t, err, text)
					continue
				}
				var e *Error
				require.True(t, errors.As(err, &e), text)
				msg := e.Msg
				if msg == "" {
					msg = NoDetail
				}
				require.Equal(t, []any{errno.Errno(want), w[3], place}, []any{e.Errno, msg, e.Pos}, text)
			}
			require.Greater(t, n, 150)
		})
	}
}

// TestFunctionsAndCPUsMatch: the records that filters of 6.6 and later pass.
func TestFunctionsAndCPUsMatch(t *testing.T) {
	rec := make([]byte, 40)
	rec[8], rec[9] = 0x05, 0x10 // __probe_ip 0x1005, in vfs_read
	rec[16], rec[32] = 3, 0xff  // n 3, t -1
	wide := newer()
	wide.CPUs = 8
	format := asked(wide)["e"]
	for text, want := range map[string]bool{
		"__probe_ip.function == vfs_read": true, "__probe_ip.function != vfs_read": false, "__probe_ip.function == 0x1010": true,
		"__probe_ip.function == ksys_read": false, "__probe_ip.function != ksys_read": true, "h.function == vfs_read": false,
		"CPU & CPUS{1}": true, "CPU & CPUS{0,2-7}": false, "CPU & CPUS{all}": true, "CPU & CPUS{N}": false, "CPU & CPUS{0-7:1/2}": false,
		"CPU & CPUS{1-7:1/2}": true, "CPU == CPUS{1}": true, "CPU == CPUS{0-1}": false, "CPU != CPUS{0-1}": true, "CPU != CPUS{1}": false,
		"n & CPUS{3}": true, "n & CPUS{1,2}": false, "n & CPUS{2-3}": true, "n == CPUS{2-3}": false, "n != CPUS{2-3}": true, "n == CPUS{3}": true,
		"t & CPUS{0-7}": false, "t != CPUS{0-7}": false, "h & CPUS{0-7}": true, "stacktrace == 0": false, "stacktrace != 0": false,
	} {
		f, err := Compile(text, format)
		require.NoError(t, err, text)
		require.Equal(t, want, f.Match(rec, Current{CPU: 1}), text)
	}
	for _, list := range []string{"8", "0-8", "7-0", "0-1:2/1", "0-1:1/0", "0:1/2", "0-", "-1", "0-1:", "0-1:1", "4294967296", "x", "0x1", "all:1", "allx"} {
		_, err := Compile("CPU & CPUS{"+list+"}", format)
		require.ErrorContains(t, err, "Invalid cpulist", list)
	}
	// A list that holds no CPU is none of one CPU either.
	f, err := Compile("CPU == CPUS{,}", format)
	require.NoError(t, err)
	require.False(t, f.Match(rec, Current{CPU: 1}))
}
