package mailbox

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What Line writes, Program reads.
func TestLines(t *testing.T) {
	for _, words := range [][]string{{"/bin/true"}, {"/bin/sh", "-c", `echo 'a' "b" \ $c; exit`}, {"/bin/x", ""}, {"/bin/x y", "ü", "a\tb\nc", "\x01"}} {
		c, err := Program(Exec, Line(words), nil)
		require.NoError(t, err)
		require.Equal(t, words, c.Args)
	}
	require.Equal(t, `/bin/sh -c 'echo '\''a'\'''`, Line([]string{"/bin/sh", "-c", "echo 'a'"}))
}
