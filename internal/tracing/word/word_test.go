package word_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/tracing/word"
)

// Rule: white space is the kernel's, of bytes in Latin-1 (lib/ctype.c). Kernels 5.10, 6.1 and 7.3 take a definition whose
// words 0xa0 divides, and refuse one with "à" in a text.
func TestWhiteSpaceIsLatin1(t *testing.T) {
	for text, want := range map[string][]string{
		"":                     nil,
		" \t\n\v\f\r\xa0":      nil,
		"a\xa0b":               {"a", "b"},
		"\xa0a":                {"a"},
		"no-break\u00a0space":  {"no-break\xc2", "space"},
		`\"à"`:                 {"\\\"\xc3", `"`},
		`\"é"`:                 {`\"é"`},
		"next\x85line":         {"next\x85line"},
		"unit\x1fseparator":    {"unit\x1fseparator"},
		"em\u2003space":        {"em\u2003space"},
		"a\vb\fc":              {"a", "b", "c"},
		"nul\x00stays in word": {"nul\x00stays", "in", "word"},
	} {
		require.Equal(t, want, word.Split(text), "%q", text)
	}
	require.Equal(t, "a b", word.Trim("\xa0 a b\n\xa0"))
	require.Equal(t, "a \xa0", word.TrimLeft(" \xa0a \xa0"))
	require.Equal(t, " a", word.TrimRight(" a\xa0\n"))
	require.Equal(t, 1, word.Index("a\xa0b"))
	require.Equal(t, 2, word.Index("ab"))
}
