package view_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/decoder"
	"kprobelab/decoder/view"
	"kprobelab/profile"
)

func newView(t testing.TB, w *strings.Builder, json bool) *view.View {
	p, err := profile.Find(profile.Default)
	require.NoError(t, err)
	return view.New(w, view.View{JSON: json, Kernel: &p.Decoder, At: 0x1000})
}

// What the two views make of the same bytes, for a person and as JSON.
func TestInstructionsAreShown(t *testing.T) {
	for name, c := range map[string]struct {
		bytes string
		bad   int
		want  []string
	}{
		"call":         {"e8fbffffff", 0, []string{"e8 fb ff ff ff", "class call", "target "}},
		"rip_relative": {"488b0500000000", 0, []string{"RIP-relative: ", "mod 0 reg 0 rm 5"}},
		"sib":          {"8b04b8", 0, []string{"scale 4 index 7 base 0"}},
		"bad":          {"06", 1, []string{"(bad): "}},
		"two":          {"90c3", 0, []string{"length 1", "class ret"}},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := decoder.ParseHex(c.bytes)
			require.NoError(t, err)
			var out strings.Builder
			v := newView(t, &out, false)
			require.Equal(t, c.bad, v.All(b))
			require.NoError(t, v.Flush())
			for _, want := range c.want {
				require.Contains(t, out.String(), want)
			}
			out.Reset()
			v = newView(t, &out, true)
			require.Equal(t, c.bad, v.All(b))
			require.NoError(t, v.Flush())
			require.True(t, strings.HasPrefix(out.String(), `{"addr":"`), out.String())
		})
	}
}

// A line that is no instruction is an answer, and is counted.
func TestLinesThatAreNone(t *testing.T) {
	for _, json := range []bool{false, true} {
		var out strings.Builder
		v := newView(t, &out, json)
		bad, err := v.Lines(strings.NewReader("90\nnot hex\n06\n\nc3\n"))
		require.NoError(t, err)
		require.Equal(t, decoder.Lines{NoBytes: 1, NoInstruction: 1}, bad)
	}
	var out strings.Builder
	_, err := newView(t, &out, false).Lines(strings.NewReader(strings.Repeat("9", decoder.MaxLine+1)))
	require.ErrorIs(t, err, decoder.ErrLine)
}

func ExampleView_All() {
	p, _ := profile.Find("6.1")
	v := view.New(os.Stdout, view.View{Kernel: &p.Decoder, At: 0x1000})
	v.All([]byte{0x48, 0x89, 0xe5})
	v.Flush()
	// Output:
	// 0x1000  48 89 e5  mov %rsp,%rbp
	//         r  o  m
	//   length 3, map primary opcode 89 (MOV, I86), class none, mod 3 reg 4 rm 5
	//   kernel: length 3, opcode 89
}
