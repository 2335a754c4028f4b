package bpf

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// TestAnswersWithoutEnd: a guest that lies cannot fill the host's memory.
func TestAnswersWithoutEnd(t *testing.T) {
	w := &limited{&bytes.Buffer{}}
	piece := make([]byte, bounded.BPFAnswer/4)
	for range 4 {
		_, err := w.Write(piece)
		require.NoError(t, err)
	}
	_, err := w.Write([]byte{0})
	require.ErrorIs(t, err, ErrAnswer)
	require.Equal(t, bounded.BPFAnswer, w.Len())
}

// TestAnswersThatAreNone: what a guest can write in place of an answer is an error, and what came before is kept.
func TestAnswersThatAreNone(t *testing.T) {
	const one = `{"program":{"name":"a","loads":true}}` + "\n"
	for name, c := range map[string]struct {
		text string
		kept int
		err  error
	}{
		"whole":       {one + one, 2, nil},
		"nothing":     {"", 0, nil},
		"cut":         {one + `{"program":{"na`, 1, ErrAnswer},
		"no_object":   {one + "[1]", 1, ErrAnswer},
		"empty_line":  {one + "{}", 1, ErrAnswer},
		"not_read":    {`{"error":"it is none"}`, 0, ErrObject},
		"other_types": {`{"program":{"name":7}}`, 0, ErrAnswer},
	} {
		_, got, err := read(strings.NewReader(c.text))
		require.ErrorIs(t, err, c.err, name)
		require.Len(t, got.Programs, c.kept, name)
	}
}

// TestABuildWithoutTheLoader: the error names the command that makes one.
func TestABuildWithoutTheLoader(t *testing.T) {
	if builtLoader != nil {
		t.Skip("this build has the loader (tag bpfloader; make test builds without it)")
	}
	_, err := Load(nil, []byte("\x7fELF"), nil)
	require.ErrorIs(t, err, ErrLoader)
	require.ErrorContains(t, err, "make build")
}
