package definition

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestOtherKindsOfEvents(t *testing.T) {
	for line, want := range map[string]string{
		"f:fp/a vfs_read":            "fprobe events",
		"f vfs_read%return":          "fprobe events",
		"f8:fp/a vfs_read%return":    "fprobe events",
		"t:tp/a sched_switch":        "tracepoint events",
		"t sched_switch prev->pid":   "tracepoint events",
		"e:ep/a sched/sched_switch":  "event probes",
		"e sched.sched_switch":       "event probes",
		"s:lat u64 delta; pid_t pid": "synthetic events",
		"p:k/a vfs_read":             "",
		"r:k/a vfs_read":             "",
		"p:u/a /bin/x:0x10":          "",
		"e:12 x":                     "", // the function e and its line 12
		"s vfs_read":                 "",
		"free vfs_read":              "",
		"exit_mm mm":                 "",
		"f:fp/a":                     "",
		"tcp_sendmsg:3 size":         "",
		":x y":                       "",
	} {
		require.Equal(t, want, ReadLine(line).Other(), line)
	}
}

// Property: a line that is made of another's words has its words, and is of its kind.
func TestLinesOfWords(t *testing.T) {
	text, err := os.ReadFile("testdata/definitions.txt")
	require.NoError(t, err)
	var lines []string
	for line := range strings.Lines(string(text)) {
		if def, _, ok := strings.Cut(line, " -> "); ok {
			lines = append(lines, def)
		}
	}
	require.Greater(t, len(lines), 150)
	rapid.Check(t, func(t *rapid.T) {
		space := rapid.StringOfN(rapid.SampledFrom([]rune(" \t\v\f\r")), 1, 3, -1)
		read := ReadLine(rapid.SampledFrom(lines).Draw(t, "line"))
		var spaced strings.Builder
		for _, w := range read.Words {
			spaced.WriteString(space.Draw(t, "space") + w)
		}
		for _, l := range []Line{LineOf(read.Words...), ReadLine(spaced.String()), ReadLine(read.Command()), ReadLine(strings.ReplaceAll(read.Command(), " ", "\xa0"))} {
			require.Equal(t, read.Words, l.Words)
			require.Equal(t, read.Command(), l.Command())
			require.Equal(t, []any{read.User(), read.Other(), read.Defines(), read.Deletes()}, []any{l.User(), l.Other(), l.Defines(), l.Deletes()})
		}
	})
}

// Rule: white space is Latin-1's: kernels 5.10, 6.1 and 7.3 take 0xa0 between words, and refuse the text "à", whose last
// byte it is.
func TestWhiteSpaceOfDefinitions(t *testing.T) {
	require.Equal(t, []string{"p:x", "vfs_read", "a=%ax", "b=%bx"}, ReadLine("\xa0p:x\xa0vfs_read a=%ax\xa0b=%bx").Words)
	require.Len(t, ReadLine(`p:x vfs_read a=\"à"`).Words, 4)
	require.Len(t, ReadLine(`p:x vfs_read a=\"é"`).Words, 3)
}
