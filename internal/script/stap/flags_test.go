package stap

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// What SystemTap 4.8 answers (testdata/booted/flags.stp asks more of it).
func TestFlagsByName(t *testing.T) {
	for _, c := range []struct {
		hazard, set string
		v           int64
		want        string
	}{
		{"no bit has a name", "_mprotect_prot_str", 0, "PROT_NONE"},
		{"no bit has none", "_msync_flag_str", 0, "0x0"},
		{"the name of no bit is not among others", "_mprotect_prot_str", 5, "PROT_READ|PROT_EXEC"},
		{"not by number, but as stap's list is", "_mmap_flags", 0x62, "MAP_PRIVATE|MAP_ANONYMOUS|MAP_32BIT"},
		{"what has no name is a number", "_at_flag_str", 0x210, "AT_REMOVEDIR|0x10"},
		{"64 bits", "_at_flag_str", -1 << 32, "0xffffffff00000000"},
		{"32 bits", "_mremap_flags", 1<<32 | 1, "MREMAP_MAYMOVE"},
		{"a choice is no sum of bits", "_seek_whence_str", 3, "SEEK_DATA"},
		{"no choice", "_madvice_advice_str", -1, "0xffffffff"},
	} {
		t.Run(c.hazard, func(t *testing.T) {
			assert.Equal(t, c.want, string(flagFunctions()[c.set](nil, c.v)))
		})
	}
}
