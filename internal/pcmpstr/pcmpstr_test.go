package pcmpstr_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/pcmpstr"
)

func vector(s string) (v pcmpstr.Vector) {
	copy(v[:], s)
	return v
}

func TestCompare(t *testing.T) {
	for name, c := range map[string]struct {
		a, b  string
		imm   byte
		index uint64
		flags uint64
	}{
		"substring_that_is_longer_than_the_rest": {"ThirdStageLoader", "xThirdStageLoade", 0x0c, 1, pcmpstr.FlagCF},
		"substring_in_the_middle":                {"ab", "xxabxx", 0x0c, 2, pcmpstr.FlagCF | pcmpstr.FlagZF | pcmpstr.FlagSF},
		"substring_cut_by_the_end_of_the_text":   {"abc", "xab", 0x0c, 16, pcmpstr.FlagZF | pcmpstr.FlagSF},
		"empty_substring_is_everywhere":          {"", "x", 0x0c, 0, pcmpstr.FlagCF | pcmpstr.FlagZF | pcmpstr.FlagSF | pcmpstr.FlagOF},
		"any_of_a_set_last":                      {"ab", "xaxbx", 0x40, 3, pcmpstr.FlagCF | pcmpstr.FlagZF | pcmpstr.FlagSF},
		"half_a_range_is_none":                   {"azA", "B", 0x04, 16, pcmpstr.FlagZF | pcmpstr.FlagSF},
		"signed_range":                           {"\xf0\x10", "\x80\x05", 0x06, 1, pcmpstr.FlagCF | pcmpstr.FlagZF | pcmpstr.FlagSF},
		"first_difference":                       {"same", "sane", 0x18, 2, pcmpstr.FlagCF | pcmpstr.FlagZF | pcmpstr.FlagSF},
		"words":                                  {"a\x00b\x00", "x\x00a\x00b\x00", 0x0d, 1, pcmpstr.FlagCF | pcmpstr.FlagZF | pcmpstr.FlagSF},
		"negative_of_what_is_valid":              {"a", "aab", 0x30, 2, pcmpstr.FlagCF | pcmpstr.FlagZF | pcmpstr.FlagSF},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := vector(c.a), vector(c.b)
			r := pcmpstr.Compare(&a, &b, pcmpstr.Implicit(&a, c.imm), pcmpstr.Implicit(&b, c.imm), c.imm)
			require.Equal(t, c.index, r.Index())
			require.Equal(t, c.flags, r.Flags)
		})
	}
}

func TestExplicitLengths(t *testing.T) {
	for v, n := range map[int64]int{0: 0, 3: 3, -3: 3, 16: 16, 40: 16, -40: 16, -1 << 63: 16} {
		require.Equal(t, n, pcmpstr.Explicit(v, 0))
	}
	require.Equal(t, 8, pcmpstr.Explicit(12, 1))
}

func TestMask(t *testing.T) {
	a, b := vector("b"), vector("abcb")
	require.Equal(t, vector("\x0a"), pcmpstr.Compare(&a, &b, 1, 4, 0).Mask())
	require.Equal(t, vector("\x00\xff\x00\xff"), pcmpstr.Compare(&a, &b, 1, 4, 0x40).Mask())
}
