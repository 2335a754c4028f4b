package kimage

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/oracle"
	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// measuredLength are the kinds whose length was measured for every row.
// Retpolines count as 5 bytes there, with or without a CS prefix.
var measuredLength = map[string]bool{"alternative": true, "paravirt": true}

// measuredSites reads the measured rows of a kind as "addr len", sorted and
// without repetitions.
func measuredSites(t *testing.T, kernel string) map[string][]string {
	rows := map[string][]string{}
	oracle.Rows(t, oracle.File(t, kernel, "patch_sites.tsv.gz"), func(c []string) {
		row := c[1]
		if c[0] == "ex_table" {
			row += " " + strings.TrimPrefix(c[3], "fixup=")
		} else if n, _ := strconv.Atoi(c[2]); n > 0 && measuredLength[c[0]] {
			row += fmt.Sprintf(" %d", n)
		}
		rows[c[0]] = append(rows[c[0]], row)
	})
	for k := range rows {
		slices.Sort(rows[k])
		rows[k] = slices.Compact(rows[k])
	}
	return rows
}

// Rule: the tables read from the file equal the running kernel's tables.
func TestTablesAgainstRealKernels(t *testing.T) {
	kinds := map[string]SiteKind{
		"mcount_fentry_nop": SiteFtrace, "jump_label": SiteJumpLabel, "static_call_site": SiteStaticCall,
		"smp_lock": SiteSMPLock, "alternative": SiteAlternative, "paravirt": SiteParavirt,
		"return_site": SiteReturn, "retpoline_site": SiteRetpoline,
	}
	eachKernel(t, func(t *testing.T, kernel string, img *Image) {
		want := measuredSites(t, kernel)
		text := img.bounds
		for name, kind := range kinds {
			// Elsewhere these rows were inferred from names and live bytes.
			if want[name] == nil || kind == SiteFtrace && kernel != "oracle" {
				continue
			}
			// The measured rows of these kinds were taken from text alone.
			inText := func(a x86.Addr) bool { return text.text(a) }
			all := want[name][len(want[name])-1] > fmt.Sprintf("%x", uint64(text.etext))
			var got []string
			for _, s := range img.Sites(kind) {
				if all || inText(s.Addr) {
					got = append(got, siteRow(name, s))
				}
			}
			slices.Sort(got)
			compareRows(t, name, want[name], slices.Compact(got))
		}
		var exceptions, bugs []string
		for _, e := range img.ExceptionTable() {
			exceptions = append(exceptions, fmt.Sprintf("%x %x", uint64(e.Addr), uint64(e.Fixup)))
		}
		for _, b := range img.BugTable() {
			bugs = append(bugs, fmt.Sprintf("%x", uint64(b.Addr)))
		}
		compareRows(t, "ex_table", want["ex_table"], exceptions)
		compareRows(t, "bug_table", want["bug_table"], bugs)
		require.Empty(t, img.IgnoredEntries())
	})
}

func siteRow(kind string, s Site) string {
	if measuredLength[kind] {
		return fmt.Sprintf("%x %d", uint64(s.Addr), s.Len)
	}
	return fmt.Sprintf("%x", uint64(s.Addr))
}

// Rule: a probe was ftrace-based exactly where the table names a site.
func TestFtraceSitesAgainstProbes(t *testing.T) {
	eachKernel(t, func(t *testing.T, kernel string, img *Image) {
		text := oracle.LiveText(t, kernel)
		n := 0
		for _, p := range oracle.Points(t, kernel) {
			if p.Err != 0 {
				continue
			}
			at := p.Addr
			if b := text.At(at); p.Off == 0 && len(b) > 4 && bytes.Equal(b[:4], opened.SealedNop4) || bytes.HasPrefix(b, opened.Endbr64) {
				at += 4 // where the kernel put it
			}
			s, ok := img.SiteAt(SiteFtrace, at)
			require.Equal(t, p.Ftrace, ok && s.Addr == at, "%s %s+%d", p.Addr, p.Sym, p.Off)
			n++
		}
		t.Logf("%d probes", n)
	})
}

// Rule: in the file every static branch stands as its key begins, so booting
// need not look at keys.
func TestJumpLabelsStandAsTheirKeys(t *testing.T) {
	eachKernel(t, func(t *testing.T, _ string, img *Image) {
		for _, j := range img.JumpLabels() {
			enabled := false // a key in zero-filled memory
			if b := img.bytes(j.Key, 4); b != nil {
				enabled = le.Uint32(b) != 0
			}
			op := img.bytes(j.Addr, 1)[0]
			require.Equal(t, enabled != j.Branch, op == 0xeb || op == 0xe9, "%+v", j)
		}
	})
}

func compareRows(t *testing.T, name string, want, got []string) {
	t.Helper()
	t.Logf("%s: %d entries", name, len(got))
	have := make(map[string]bool, len(got))
	for _, g := range got {
		have[g] = true
	}
	var missing []string
	for _, w := range want {
		if !have[w] {
			missing = append(missing, w)
		}
		delete(have, w)
	}
	var extra []string
	for g := range have {
		extra = append(extra, g)
	}
	slices.Sort(extra)
	if len(missing)+len(extra) > 0 {
		t.Errorf("%s: %d missing %q, %d too many %q", name, len(missing), first(missing, 5), len(extra), first(extra, 5))
	}
}

func first(list []string, n int) []string { return list[:min(n, len(list))] }

// Rule: the blacklist is the kernel's, element by element in its order.
func TestBlacklistAgainstRealKernels(t *testing.T) {
	eachKernel(t, func(t *testing.T, kernel string, img *Image) {
		var want, got []string
		for _, l := range readLines(t, kernel, "kprobes_blacklist.txt") {
			if l != "" && !strings.Contains(l, "[") {
				want = append(want, strings.Join(strings.Fields(l), " "))
			}
		}
		for _, e := range img.Blacklist() {
			got = append(got, fmt.Sprintf("0x%016x-0x%016x %s", uint64(e.Start), uint64(e.End), e.Symbol))
		}
		require.Equal(t, want, got)
		for _, e := range img.Blacklist() {
			if e.Start < e.End {
				r, ok := img.Blacklisted(e.End - 1)
				require.True(t, ok, "%v", e)
				require.True(t, r.Contains(e.End-1))
			}
		}
	})
}
