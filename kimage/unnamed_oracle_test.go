package kimage

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage/internal/opened"
	"kprobelab/profile"
	"kprobelab/x86"
)

// series is a release without its patch level, in the name of a kernel's file.
var series = regexp.MustCompile(`^vmlinuz-(\d+\.\d+)`)

// eachVmlinuz runs f with the files of kernels, one of each of four series. It takes the files
// that make kernel and make dumps have fetched, the newest too, or, if there are none, the
// recorded files. With -short it takes two series.
func eachVmlinuz(t *testing.T, f func(t *testing.T, path string)) {
	t.Helper()
	files, _ := filepath.Glob("../.cache/kernel/*/vmlinuz-*")
	if len(files) == 0 {
		for _, kernel := range slices.Sorted(maps.Keys(oracle.Kernels)) {
			files = append(files, oracle.Image(t, kernel))
		}
	}
	by := map[string]string{}
	newest := profile.Version{}
	last := ""
	for _, path := range files {
		if of := series.FindStringSubmatch(filepath.Base(path)); of != nil {
			by[of[1]] = path
			if v, ok := profile.ParseVersion(of[1]); ok && (newest.Major < v.Major || newest.Major == v.Major && newest.Minor < v.Minor) {
				newest, last = v, of[1]
			}
		}
	}
	for _, of := range slices.Compact([]string{"5.10", "6.1", "6.12", last}) {
		if path := by[of]; path != "" && (!testing.Short() || of == "6.1" || of == last) {
			t.Run(of, func(t *testing.T) { f(t, path) })
		}
	}
}

// Rule: the tables found without data symbols equal the ones that the symbols name, by
// the code that walks a table, and by the entries alone.
func TestTablesAreFoundWithoutTheirNames(t *testing.T) {
	eachVmlinuz(t, func(t *testing.T, path string) {
		img, err := Open(path, &Options{NoBoot: true})
		require.NoError(t, err)
		img.bounds.onlyText = true
		u, n := newUnnamed(img), 0
		for _, rule := range u.rules() {
			want := (tableOwner{img: img}).named(rule.table)
			if rule.table == mcountLocations { // entries of functions that the linker dropped come first
				for want.Len() > 0 && opened.Abs64(img.bytes(want.Start, 8)) == 0 {
					want.Start += 8
				}
			}
			want.End = lastEntry(img, rule.table, want)
			walked, longest := u.walked(rule), u.longest(rule)
			t.Log(rule.table.section, want, walked, longest)
			if want.Len() == 0 {
				require.Zero(t, walked, rule.table.section)
				require.Zero(t, longest, rule.table.section)
				continue
			}
			n++
			if rule.table == mcountLocations && walked.Len() > 0 {
				require.LessOrEqual(t, walked.Start, want.Start)
				walked.Start = want.Start
			}
			if rule.walkedOnly || walked.Len() > 0 {
				require.Equal(t, want, walked, rule.table.section)
			}
			if !rule.walkedOnly && want.Len() > 12*16 {
				require.Equal(t, want, longest, rule.table.section)
			}
		}
		require.Greater(t, n, 9)
		img.bounds.onlyText = false
		named := img.featureNames()
		flags, bugs := newUnnamed(img).flagTables()
		require.Equal(t, img.symbolRange("x86_cap_flags"), flags)
		require.Equal(t, named.bugs, img.stringTable(bugs, feature(flags.End.Sub(flags.Start)/8)))
		if want, ok := img.symbolAddr("cpu_mitigations"); ok {
			at, _ := newUnnamed(img).tested("cpu_mitigations_off")
			require.Equal(t, want, at)
		}
	})
}

// lastEntry returns the end address of a table's entries: zeros fill the section of lock
// prefixes up to a page.
func lastEntry(img *Image, table *tableName, r x86.Range) x86.Addr {
	for table == smpLocks && r.Len() > 0 && zero(img.bytes(r.End-4, 4)) {
		r.End -= 4
	}
	return r.End
}

// Rule: a kernel whose symbols name functions alone has the same tables, text and
// behaviour as with all its symbols.
func TestKernelsWithoutSymbolsOfData(t *testing.T) {
	eachVmlinuz(t, func(t *testing.T, path string) {
		whole, err := Open(path, nil)
		require.NoError(t, err)
		for name, keep := range map[string]func(s Symbol) bool{
			"as_without_KALLSYMS_ALL": func(s Symbol) bool {
				return whole.bounds.text(s.Addr) || s.Addr == whole.bounds.etext || whole.bounds.initText(s.Addr)
			},
			"with_bounds_of_tables": func(s Symbol) bool {
				return whole.bounds.text(s.Addr) || whole.bounds.initText(s.Addr) || isTableBound(s.Name)
			},
			"functions_only": func(s Symbol) bool { return strings.ContainsRune("TtWw", rune(s.Type)) },
			"without_those_of_tables": func(s Symbol) bool {
				return !strings.HasPrefix(s.Name, "__start_") && !strings.HasPrefix(s.Name, "__stop_") || s.Type|0x20 == 't'
			},
		} {
			t.Run(name, func(t *testing.T) {
				var b strings.Builder
				for _, s := range whole.Symbols() {
					if keep(s) {
						fmt.Fprintf(&b, "%x %c %s\n", uint64(s.Addr), s.Type, s.Name)
					}
				}
				file := filepath.Join(t.TempDir(), "System.map")
				require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
				img, err := Open(path, &Options{SystemMap: file})
				require.NoError(t, err)
				require.Equal(t, name != "without_those_of_tables", img.bounds.onlyText)
				sameTables(t, whole, img)
			})
		}
	})
}

// sameTables compares what two images of one kernel have.
func sameTables(t *testing.T, want, got *Image) {
	t.Helper()
	for kind := range NumSiteKinds {
		require.Equal(t, want.Sites(kind), got.Sites(kind), kind)
	}
	require.Equal(t, want.JumpLabels(), got.JumpLabels())
	require.Equal(t, want.StaticCalls(), got.StaticCalls())
	require.Equal(t, want.ExceptionTable(), got.ExceptionTable())
	require.Equal(t, want.BugTable(), got.BugTable())
	require.Equal(t, len(want.Blacklist()), len(got.Blacklist()))
	for i, e := range want.Blacklist() {
		require.Equal(t, e.Start, got.Blacklist()[i].Start)
	}
	require.Equal(t, want.Profile(), got.Profile())
	for _, s := range want.Sections() {
		if !s.code() {
			continue
		}
		for i, c := range got.section(s.Name).Data {
			if at := s.Addr.Add(int64(i)); c != s.Data[i] {
				y, _ := want.SymbolAt(at)
				require.Fail(t, "the text differs", "%s %v %s", s.Name, at, y.Name)
			}
		}
	}
}

// keysNotTold are keys that no function tells apart from another: blake2s_compress asks both of its own.
var keysNotTold = []string{"blake2s_use_ssse3", "blake2s_use_avx512"}

// Rule: the functions that use a key lead to the key that the symbol names, and to none if the
// kernel has no such key.
func TestKeysAreFoundWithoutTheirNames(t *testing.T) {
	eachVmlinuz(t, func(t *testing.T, path string) {
		img, err := Open(path, &Options{NoBoot: true})
		require.NoError(t, err)
		found := 0
		for _, k := range slices.Concat(bootKeys, cryptoKeys, []bootKey{{name: "init_on_alloc"}}) {
			want := map[x86.Addr]bool{}
			for _, name := range []string{k.name, "__" + k.name, strings.TrimPrefix(k.name, "__"), strings.Replace(k.name, "mds", "cpu_buf", 1)} { // renamed ones
				for _, a := range img.staticKeys(name) {
					if newUnnamed(img).data(a) { // and no function of such a name
						want[a] = true
					}
				}
			}
			got := map[x86.Addr]bool{}
			for _, users := range namelessKeys[k.name] {
				if a, ok := img.keyOf(users); ok {
					got[a.Add(-users.off)] = true
				}
			}
			if slices.Contains(keysNotTold, k.name) {
				require.Empty(t, got, k.name)
				continue
			}
			require.Equal(t, want, got, k.name)
			found += len(got)
		}
		require.Greater(t, found, 12)
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
			r := longestRun(s, entryLayout{size: 8, is: odd, gaps: tc.gaps})
			require.Equal(t, tc.want, int(r.End-r.Start)/8)
			if tc.want == tc.entries {
				require.Equal(t, s.Addr.Add(int64(tc.before)), r.Start)
			}
		})
	}
}
