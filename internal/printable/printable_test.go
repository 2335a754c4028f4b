package printable

import (
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func write(t require.TestingT, text string, colour bool) string {
	var b strings.Builder
	n, err := (&Writer{W: &b, Colour: colour}).Write([]byte(text))
	require.NoError(t, err)
	require.Equal(t, len(text), n)
	return b.String()
}

func TestControlCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"plain é 漢": "plain é 漢", "\x1b[2J": `\u001b[2J`, "a\rb\x00": `a\u000db\u0000`, "\x7f": `\u007f`, "\u009b31m": `\u009b31m`, "\xff\x1b": "\xff\\u001b", "": "",
	} {
		require.Equal(t, want, Name(text))
		require.Equal(t, want, write(t, text, false))
	}
	require.Equal(t, `a\u0009b\u000ac`, Name("a\tb\nc"))
	require.Equal(t, "a\tb\n", write(t, "a\tb\n", false))
	require.Equal(t, "\x1b[31mred\x1b[0m\\u001b[2J\\u001b[3", write(t, "\x1b[31mred\x1b[0m\x1b[2J\x1b[3", true))
	require.Equal(t, `\u001b[31m`, write(t, "\x1b[31m", false))
}

// A name turns nothing around, and ends no line.
func TestNamesThatTurnATextAround(t *testing.T) {
	for text, want := range map[string]string{
		"a\u202egnp.exe": `a\u202egnp.exe`, "\u2066a\u2069": `\u2066a\u2069`, "\u200fa": `\u200fa`, "a\u061cb": `a\u061cb`, "a\u2028b\u2029": `a\u2028b\u2029`,
		"שלום": "שלום", "ع": "ع", "a–b…": "a–b…", "a\u200db": "a\u200db", "\xe2\x80": "\xe2\x80", "\xd8": "\xd8",
	} {
		require.Equal(t, want, Name(text))
	}
}

// Nothing that a terminal acts on comes through, however it is cut into writes.
func TestNothingComesThrough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.SampledFrom([]rune("a\x1b[m;\t\n\r\x00\x7f\u0080\u009b\u009fé"))).Draw(t, "s")
		var b strings.Builder
		w := &Writer{W: &b}
		for len(s) > 0 {
			n := rapid.IntRange(1, len(s)).Draw(t, "n")
			_, err := w.Write([]byte(s[:n]))
			require.NoError(t, err)
			s = s[n:]
		}
		for _, r := range b.String() {
			require.False(t, r != '\n' && r != '\t' && r != utf8.RuneError && (r < ' ' || r >= 0x7f && r <= 0x9f), "%q", b.String())
		}
		for _, r := range Name(s) {
			require.True(t, r >= ' ')
		}
	})
}

func TestWriterSaysWhatFails(t *testing.T) {
	for _, text := range []string{"plain", "a\x1bb", "\x1b"} {
		_, err := (&Writer{W: full{}}).Write([]byte(text))
		require.ErrorIs(t, err, errFull)
	}
}

type full struct{}

var errFull = iotest.ErrTimeout

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestOneWriteForEachPiece: a piece of control characters is one write, as any other.
func TestOneWriteForEachPiece(t *testing.T) {
	for _, text := range []string{"plain", "\x00", strings.Repeat("\x00", 1000), "a\x1bb\x07c", "\u009b", "\n", strings.Repeat("a\x00", 100_000)} {
		n := 0
		w := &Writer{W: writerFunc(func(b []byte) (int, error) { n++; return len(b), nil })}
		_, err := w.Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, 1, n, "%.20q", text)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
