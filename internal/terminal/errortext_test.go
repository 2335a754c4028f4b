package terminal

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNamesInErrorsMakeNoLines: a file whose name has a newline or a tab in it, which
// the system's errors name, ours, or both; the name as it was given, made absolute,
// or its last part.
func TestNamesInErrorsMakeNoLines(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		args []string
		want string
	}{
		"system":        {&fs.PathError{Op: "open", Path: "a\nb", Err: fs.ErrNotExist}, nil, `open a\u000ab: file does not exist`},
		"argument":      {errors.New("a\nb: no object"), []string{"check", "a\nb"}, `a\u000ab: no object`},
		"absolute":      {errors.New("/home/x/a\tb is not a directory"), []string{"mount", "./x/../a\tb"}, `/home/x/a\u0009b is not a directory`},
		"folder":        {errors.New("/tmp/a\nb/c: no"), []string{"/tmp/a\nb/c"}, `/tmp/a\u000ab/c: no`},
		"flag's value":  {errors.New("a\nb: not what it should be"), []string{"--config=a\nb"}, `a\u000ab: not what it should be`},
		"with address":  {errors.New("a\nb: no"), []string{"--live-text", "a\nb@0x1"}, `a\u000ab: no`},
		"only newlines": {errors.New("one\ntwo"), []string{"\n", "/\n/"}, "one\ntwo"},
		"both":          {fmt.Errorf("c\td: %w", &fs.PathError{Op: "stat", Path: "a\nb", Err: fs.ErrInvalid}), []string{"c\td"}, `c\u0009d: stat a\u000ab: invalid argument`},
		"honest lines":  {errors.New("gcd(:\n   ^"), []string{"run", "--call", "gcd("}, "gcd(:\n   ^"},
	} {
		require.Equal(t, c.want, ErrorText(c.err, c.args), name)
	}
}
