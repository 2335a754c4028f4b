package report

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBytesAsPeopleWriteThem(t *testing.T) {
	for _, text := range []string{"55 c3", "55c3", `\x55\xc3`, "0x55, 0xc3", "55\n\tc3"} {
		b, err := ParseBytes(text)
		require.NoError(t, err, text)
		require.Equal(t, []byte{0x55, 0xc3}, b, text)
	}
	for _, text := range []string{"", " ", "5", "push", "55 c"} {
		_, err := ParseBytes(text)
		require.ErrorIs(t, err, ErrBytes, text)
	}
}

func TestPointsOfAFunction(t *testing.T) {
	for text, want := range map[string]string{"": "f", "+4": "f+4", "0x4": "f+0x4", "4": "f+4", "g": "g", "g+1": "g+1"} {
		require.Equal(t, want, InFunction("f", text), text)
	}
}

func TestWhatIsBadIsSaid(t *testing.T) {
	require.Empty(t, (&Check{}).Bad())
	require.Equal(t, []string{"1 probe does not attach"}, (&Check{failed: map[string]int{attachFault: 1}}).Bad())
	require.Equal(t, []string{"1 program does not load", "2 probes do not attach", "1 probe does harm (--allow HAZARD lets it pass)"},
		(&Check{failed: map[string]int{attachFault: 2, hazardFault: 1, loadFault: 1}}).Bad())
}
