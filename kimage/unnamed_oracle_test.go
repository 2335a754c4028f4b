package kimage

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/oracle"
	"kprobelab/x86"
)

// Rule: what is found without data symbols is what the symbols name.
func TestTablesAreFoundWithoutTheirNames(t *testing.T) {
	eachKernel(t, func(t *testing.T, kernel string, _ *Image) {
		img, err := Open(oracle.Image(t, kernel), &Options{NoBoot: true})
		require.NoError(t, err)
		img.findUnnamed()
		for section, ends := range map[string][2]string{
			"__mcount_loc":       {"__start_mcount_loc", "__stop_mcount_loc"},
			"__jump_table":       {"__start___jump_table", "__stop___jump_table"},
			".static_call_sites": {"__start_static_call_sites", "__stop_static_call_sites"},
			"_kprobe_blacklist":  {"__start_kprobe_blacklist", "__stop_kprobe_blacklist"},
		} {
			start, ok := img.symbolAddr(ends[0])
			if !ok {
				require.Zero(t, img.unnamed[section], section)
				continue
			}
			stop, _ := img.symbolAddr(ends[1])
			if section == "__mcount_loc" { // entries of functions that the linker dropped come first
				for abs64(img.bytes(start, 8)) == 0 {
					start += 8
				}
			}
			require.Equal(t, x86.Range{Start: start, End: stop}, img.unnamed[section], section)
		}
		named := img.featureNames()
		flags, bugs := (&unnamed{img: img}).flagTables()
		require.Equal(t, img.symbolRange("x86_cap_flags"), flags)
		require.Equal(t, named.bugs, img.stringTable(bugs, feature(flags.End.Sub(flags.Start)/8)))
		if want, ok := img.symbolAddr("cpu_mitigations"); ok {
			at, _ := (&unnamed{img: img}).tested("cpu_mitigations_off")
			require.Equal(t, want, at)
		}
	})
}

// Rule: a row of entries is found wherever it begins, and a short one is none.
func TestRowsOfEntries(t *testing.T) {
	odd := func(_ x86.Addr, b []byte) bool { return b[0] == 1 }
	for name, tc := range map[string]struct {
		before, entries int
		gaps            bool
		want            int
	}{
		"at_the_start": {0, 9, false, 9}, "after_a_word": {4, 9, false, 9}, "too_few": {8, shortestTable - 1, false, 0},
		"without_its_gap": {0, 30, false, 20}, "with_its_gap": {0, 30, true, 30},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Section{Addr: 0x1000, Data: make([]byte, tc.before+8*tc.entries+12)}
			for i := range tc.entries {
				if tc.entries != 30 || i != 9 {
					s.Data[tc.before+8*i] = 1
				}
			}
			r := longestRun(s, entryLayout{8, odd, tc.gaps})
			require.Equal(t, tc.want, int(r.End-r.Start)/8)
			if tc.want == tc.entries {
				require.Equal(t, s.Addr.Add(int64(tc.before)), r.Start)
			}
		})
	}
}
