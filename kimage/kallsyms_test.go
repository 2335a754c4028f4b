package kimage

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"kprobelab/x86"
)

func inTestText(a x86.Addr) bool { return a.In(testBase, testBase+0x100) }

func TestKallsymsLayouts(t *testing.T) {
	for _, l := range kallsymsLayouts {
		t.Run(l.name, func(t *testing.T) {
			want := testKernelSymbols()
			if !l.percpu && !l.absolute { // per-CPU symbols are no offsets from the base there
				want = want[2:]
			}
			data := append(make([]byte, 64), l.build(want)...)
			got, err := findKallsyms(data, testTables-64, inTestText)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}

// TestKallsymsLongName has a name whose length takes two bytes.
func TestKallsymsLongName(t *testing.T) {
	syms := testKernelSymbols()
	syms[4].Name = strings.Repeat("long", 100)
	got, err := findKallsyms(kallsymsLayouts[4].build(syms), testTables, inTestText)
	require.NoError(t, err)
	require.Equal(t, syms, got)
}

func TestKallsymsRoundTrip(t *testing.T) {
	name := rapid.StringMatching(`[A-Za-z_][A-Za-z0-9_.$]{0,40}`)
	rapid.Check(t, func(t *rapid.T) {
		l := rapid.SampledFrom(kallsymsLayouts).Draw(t, "layout")
		syms := []Symbol{{Name: "_stext", Type: 'T', Addr: testBase}}
		for i, n := range rapid.SliceOfN(name, minKallsyms, 600).Draw(t, "names") {
			syms = append(syms, Symbol{Name: n, Type: 't', Addr: testBase + x86.Addr(i/2)})
		}
		for i := range syms { // the anchors of the search must be where they claim
			if i > 0 && (syms[i].Name == "_text" || syms[i].Name == "_stext") {
				syms[i].Name = "other"
			}
		}
		got, err := findKallsyms(l.build(syms), testTables, func(a x86.Addr) bool { return a == testBase })
		if err != nil {
			t.Fatal(err)
		}
		for i := range syms {
			if syms[i] != got[i] {
				t.Fatalf("symbol %d: %v, want %v", i, got[i], syms[i])
			}
		}
	})
}

// TestKallsymsDamage flips and cuts: an error or fewer symbols, never a panic.
func TestKallsymsDamage(t *testing.T) {
	for _, l := range kallsymsLayouts {
		data := l.build(testKernelSymbols()[2:])
		for i := 0; i < len(data); i += 11 {
			bad := append([]byte(nil), data...)
			bad[i] ^= 0xff
			_, _ = findKallsyms(bad, testTables, inTestText)
			_, _ = findKallsyms(data[:i], testTables, inTestText)
		}
	}
}

func TestKallsymsAbsent(t *testing.T) {
	_, err := findKallsyms([]byte("nothing of the kind"), testTables, inTestText)
	require.ErrorIs(t, err, errNoKallsyms)
}

func FuzzKallsyms(f *testing.F) {
	for _, l := range kallsymsLayouts {
		f.Add(l.build(testKernelSymbols()[2:]))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		syms, err := findKallsyms(data, testTables, inTestText)
		if err == nil {
			require.True(t, plausible(syms, inTestText))
		}
	})
}
