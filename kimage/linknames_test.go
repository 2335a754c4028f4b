package kimage

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: a kernel that was optimized at link time looks names up without LLVM's suffixes,
// as its release does; others keep theirs.
func TestCleanNames(t *testing.T) {
	names := []string{"a.llvm.123", "b.45", "c.cold", ".llvm.6", "d"}
	for release, want := range map[string][]string{
		"5.15.85":            names,
		"5.19.0":             {"a", "b", "c", ".llvm.6", "d"},
		"6.1.192 \x00.llvm.": {"a", "b.45", "c.cold", ".llvm.6", "d"},
		"6.8.0 \x00.llvm.":   {"a", "b.45", "c.cold", ".llvm.6", "d"},
		"6.11.0":             names,
	} {
		img := &Image{sections: []*Section{{Name: ".rodata", Addr: testText, Data: append([]byte("Linux version "+release), 0)}}}
		var syms []Symbol
		for _, n := range names {
			syms = append(syms, Symbol{Name: n})
		}
		img.cleanNames(syms)
		for i, s := range syms {
			require.Equal(t, want[i], s.Name, release)
		}
		plain := []Symbol{{Name: "b.45"}}
		img.cleanNames(plain)
		require.Equal(t, "b.45", plain[0].Name)
	}
}
