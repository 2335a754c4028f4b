package kimage

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/x86"
)

const (
	testText  = testBase
	testTable = testBase + 0x10000
)

// tableImage is an image of some text and the given tables, by section name.
func tableImage(t testing.TB, text []byte, tables ...testSection) *Image {
	t.Helper()
	sections := []testSection{{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: testText, data: text}}
	at := uint64(testTable)
	for _, s := range tables {
		s.typ, s.addr = 1, at
		s.flags |= shfAlloc
		at += uint64(len(s.data)+0xfff) &^ 0xfff
		sections = append(sections, s)
	}
	img, err := FromBytes("tables", testELF(etExec, sections...), &Options{NoBoot: true})
	require.NoError(t, err)
	return img
}

// relTable builds a table of words that are relative to their own place (for
// addresses) or plain (for small numbers).
func relTable(words ...uint64) []byte {
	var b []byte
	for _, w := range words {
		if w >= testBase {
			w -= testTable + uint64(len(b))
		}
		b = appendUint(b, w, 4)
	}
	return b
}

func bugAddrs(img *Image) (at []x86.Addr) {
	for _, b := range img.BugTable() {
		at = append(at, b.Addr)
	}
	return at
}

// Rule: releases differ in the size of a table's entries; the text decides
// which it is.
func TestTableLayouts(t *testing.T) {
	text := make([]byte, 0x1000)
	text[0x10], text[0x20] = 0xeb, 0xe9
	for name, c := range map[string]struct {
		table testSection
		check func(*testing.T, *Image)
	}{
		"exception_12_bytes": {testSection{name: "__ex_table", data: relTable(testText+1, testText+9, 7, testText+2, testText+8, 0)}, func(t *testing.T, img *Image) {
			require.Equal(t, []ExceptionEntry{{testText + 1, testText + 9, 7}, {testText + 2, testText + 8, 0}}, img.ExceptionTable())
			fixup, ok := img.ExceptionEntry(testText + 2)
			require.True(t, ok)
			require.Equal(t, x86.Addr(testText+8), fixup)
			_, ok = img.ExceptionEntry(testText + 3)
			require.False(t, ok)
		}},
		"exception_8_bytes": {testSection{name: "__ex_table", data: relTable(testText+3, testText+9, testText+2, testText+8)}, func(t *testing.T, img *Image) {
			require.Equal(t, []ExceptionEntry{{testText + 2, testText + 8, 0}, {testText + 3, testText + 9, 0}}, img.ExceptionTable())
		}},
		"bug_12_bytes": {testSection{name: "__bug_table", data: relTable(testText+5, 1, 2, testText+4, 1, 2)}, func(t *testing.T, img *Image) {
			require.Equal(t, []x86.Addr{testText + 4, testText + 5}, bugAddrs(img))
			b, ok := img.BugAt(testText + 5)
			require.True(t, ok)
			require.Equal(t, Bug{Addr: testText + 5, Flags: testTable + 10, Line: 2}, b)
			require.True(t, img.BugEntry(testText+4))
			require.False(t, img.BugEntry(testText+6))
		}},
		"bug_8_bytes": {testSection{name: "__bug_table", data: relTable(testText+5, 1, testText+4, 1)}, func(t *testing.T, img *Image) {
			require.Equal(t, []x86.Addr{testText + 4, testText + 5}, bugAddrs(img))
		}},
		"bug_16_bytes": {testSection{name: "__bug_table", data: relTable(testText+5, 1, 1, 2, testText+4, 1, 1, 2)}, func(t *testing.T, img *Image) {
			b, ok := img.BugAt(testText + 5)
			require.True(t, ok)
			require.Equal(t, Bug{Addr: testText + 5, Flags: testTable + 14, Line: 2}, b)
			require.Empty(t, img.IgnoredEntries())
		}},
		"jump_label_16_bytes": {testSection{name: "__jump_table", data: relTable(testText+0x20, testText+0x40, 0x101, 0, testText+0x10, testText+0x12, 0x200, 0)}, func(t *testing.T, img *Image) {
			require.Equal(t, []JumpLabel{
				{Addr: testText + 0x10, Target: testText + 0x12, Key: testTable + 24 + 0x200, Len: 2},
				{Addr: testText + 0x20, Target: testText + 0x40, Key: testTable + 8 + 0x100&^3, Len: 5, Branch: true},
			}, img.JumpLabels())
		}},
		"jump_label_24_bytes": {testSection{name: "__jump_table", data: slices.Concat(
			appendUint(nil, testText+0x20, 8), appendUint(nil, testText+0x40, 8), appendUint(nil, testText+0x801, 8))}, func(t *testing.T, img *Image) {
			require.Equal(t, []JumpLabel{{Addr: testText + 0x20, Target: testText + 0x40, Key: testText + 0x800, Len: 5, Branch: true}}, img.JumpLabels())
		}},
		"static_call": {testSection{name: ".static_call_sites", data: relTable(testText+0x30, testText+0x801, testText+8, testText+0x800)}, func(t *testing.T, img *Image) {
			require.Equal(t, []StaticCall{{testText + 8, testText + 0x800, false}, {testText + 0x30, testText + 0x800, true}}, img.StaticCalls())
		}},
		"ftrace_with_dropped_entry": {testSection{name: "__mcount_loc", data: slices.Concat(
			appendUint(nil, testText+0x20, 8), make([]byte, 8), appendUint(nil, testText, 8))}, func(t *testing.T, img *Image) {
			require.Equal(t, []Site{{testText, 5}, {testText + 0x20, 5}}, img.Sites(SiteFtrace))
		}},
		"smp_locks_with_padding": {testSection{name: ".smp_locks", data: relTable(testText+7, 0, 0)}, func(t *testing.T, img *Image) {
			require.Equal(t, []Site{{testText + 7, 1}}, img.Sites(SiteSMPLock))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			img := tableImage(t, text, c.table)
			c.check(t, img)
			require.Empty(t, img.IgnoredEntries())
		})
	}
}

// Rule: an entry that points outside the text is left out and counted.
func TestTableEntriesOutsideText(t *testing.T) {
	outside := uint64(testTable + 0x7000)
	for _, name := range []string{"__ex_table", "__bug_table", "__jump_table", ".static_call_sites", ".return_sites", ".retpoline_sites", ".smp_locks"} {
		img := tableImage(t, make([]byte, 64), testSection{name: name, data: relTable(outside, outside, 1, 2, 3)})
		require.NotZero(t, img.IgnoredEntries()[name], name)
		for k := range NumSiteKinds {
			require.Empty(t, img.Sites(k))
		}
	}
	require.Nil(t, tableImage(t, make([]byte, 64)).Sites(NumSiteKinds))
	require.Nil(t, tableImage(t, make([]byte, 64)).Sites(-1))
}

// Property: SiteIn finds the first site that overlaps, as a search of all would.
func TestSiteInIsTheFirstOverlap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		img := &Image{}
		for range rapid.IntRange(0, 30).Draw(t, "sites") {
			img.tables.addSite(SiteAlternative, x86.Addr(rapid.IntRange(0, 200).Draw(t, "addr")), rapid.IntRange(1, 40).Draw(t, "len"))
		}
		img.tables.sort()
		start := x86.Addr(rapid.IntRange(0, 260).Draw(t, "start"))
		r := x86.Range{Start: start, End: start + x86.Addr(rapid.IntRange(1, 30).Draw(t, "size"))}
		var want Site
		found := false
		for _, s := range img.Sites(SiteAlternative) {
			if (x86.Range{Start: s.Addr, End: s.Addr + x86.Addr(s.Len)}).Overlaps(r) {
				want, found = s, true
				break
			}
		}
		got, ok := img.SiteIn(SiteAlternative, r)
		require.Equal(t, found, ok)
		require.Equal(t, want, got)
	})
}

// Property: Blacklisted answers as a search of the whole list would.
func TestBlacklistedIsMembership(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		img := &Image{}
		b := &img.tables.blacklist
		for range rapid.IntRange(0, 20).Draw(t, "elements") {
			start := x86.Addr(rapid.IntRange(0, 100).Draw(t, "start"))
			size := x86.Addr(rapid.IntRange(0, 30).Draw(t, "size"))
			b.list = append(b.list, BlacklistEntry{Range: x86.Range{Start: start, End: start + size}})
		}
		b.index()
		addr := x86.Addr(rapid.IntRange(0, 140).Draw(t, "addr"))
		want := slices.ContainsFunc(b.list, func(e BlacklistEntry) bool { return e.Contains(addr) })
		r, ok := img.Blacklisted(addr)
		require.Equal(t, want, ok)
		require.Equal(t, want, r.Contains(addr))
	})
}

// FuzzTables: damaged tables never do more than leave entries out.
func FuzzTables(f *testing.F) {
	names := []string{"__ex_table", "__bug_table", "__jump_table", ".static_call_sites", "__mcount_loc", ".smp_locks",
		".altinstructions", ".parainstructions", ".return_sites", ".retpoline_sites", "_kprobe_blacklist", ".ibt_endbr_seal",
		".static_call_tramp_key", "runtime_ptr_USER_PTR_MAX"}
	f.Add(byte(0), relTable(testText+1, testText+9, 7))
	f.Add(byte(6), relTable(testText+1, testText+9, 0x8075|5<<16|3<<24))
	f.Add(byte(7), slices.Concat(appendUint(nil, testText, 8), []byte{1, 6}))
	f.Fuzz(func(t *testing.T, which byte, data []byte) {
		text := make([]byte, 256)
		for i := range text {
			text[i] = byte(i * 37)
		}
		img := tableImage(t, text, testSection{name: names[int(which)%len(names)], data: data})
		require.NoError(t, img.bootPatch())
		img.SiteAt(SiteJumpLabel, testText)
		img.Blacklisted(testText)
	})
}

// A static call's trampoline is told by its site's own instruction.
func TestTrampolinesOfSites(t *testing.T) {
	for name, code := range map[string][]byte{
		"call":             {0xe8, 0x0b, 0, 0, 0, 0x90},
		"tail call":        {0xe9, 0x0b, 0, 0, 0, 0x90},
		"conditional tail": {0x0f, 0x83, 0x0a, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			img := tableImage(t, append(code, make([]byte, 64)...))
			require.Equal(t, x86.Addr(testText+16), img.calledBy(testText))
		})
	}
}

// The table of Clang's checks of indirect calls has relative pointers.
func TestCFITraps(t *testing.T) {
	img := tableImage(t, make([]byte, 64), testSection{name: "__kcfi_traps", data: relTable(testText+9, testText+0x2000)})
	require.True(t, img.CFITrap(testText+9))
	require.False(t, img.CFITrap(testText+8))
	require.False(t, img.CFITrap(testText+0x2000), "it is outside of the text")
}
