package bpftrace

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// An aggregate that is read counts as an integer of its sign: what bpftrace 0.23.2 warns of.
func TestWarningsOfAggregates(t *testing.T) {
	signs := func(what, a, b string) string {
		return what + " of integers of different signs: '" + a + "' and '" + b + "' can lead to undefined behavior\n"
	}
	for text, want := range map[string]string{
		"@a = sum(3); print(@a / 2);":                                 "signed operands for '/'",
		"@a = max(3); print(@a % 2);":                                 "signed operands for '%'",
		"@a = count(); print(@a / 2);":                                "signed operands for '/'",
		"@a = avg((uint64)3); print(2 / @a);":                         "signed operands for '/'",
		"@a[1] = sum(3); print(@a[1] / 2);":                           "signed operands for '/'",
		"@a = sum((uint64)3); print(@a / 2);":                         "",
		"@a = count(); print(@a < 2);":                                "",
		"@a = count(); print(@a < (uint64)2);":                        signs("comparison", "count_t", "uint64"),
		"@a = avg((uint64)3); print(@a < (uint64)2);":                 signs("comparison", "avg_t", "uint64"),
		"@a = sum((uint64)3); print(@a < -2);":                        signs("comparison", "usum_t", "int64"),
		"@a = sum(3); @b = sum((uint64)3); print(@a + @b);":           "arithmetic on integers of different signs: 'sum_t' and 'usum_t' can lead to undefined behavior\n",
		"@a = sum((uint64)3); print(@a << 1); print(@a | (uint64)1);": "",
	} {
		s, err := Analyze("stdin", "BEGIN { "+text+" }", &Options{}, nil)
		require.NoError(t, err, text)
		if want == "" {
			require.Empty(t, s.Warnings, text)
			continue
		}
		require.Contains(t, s.Warnings, want, text)
	}
}
