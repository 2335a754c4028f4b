package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/assemble"
	"kprobelab/internal/printable"
)

// command runs the program with these arguments.
func command(args ...string) (code int, stdout, stderr string) {
	var out, err bytes.Buffer
	code = execute(append([]string{"kprobelab"}, args...), &out, &err)
	return code, out.String(), err.String()
}

func TestExplainWithoutAssembler(t *testing.T) {
	file := filepath.Join(t.TempDir(), "example.s")
	require.NoError(t, os.WriteFile(file, []byte("f:\tret\n"), 0o600))
	t.Setenv("PATH", t.TempDir())
	code, _, stderr := command("explain", "--asm", file)
	require.Equal(t, exitImage, code)
	require.Equal(t, "kprobelab: --asm: "+assemble.ErrNone.Error()+"; --hex takes the bytes themselves\n", stderr)
}

// TestExplainColours: on a terminal only; a pipe gets none (explain.txtar).
func TestExplainColours(t *testing.T) {
	var out bytes.Buffer
	term := newTerm(&out, &out)
	term.Out, term.OutStyle = &printable.Writer{W: &out, Colour: true}, true
	require.NoError(t, newApp(term).Run(t.Context(), []string{"kprobelab", "explain", "--hex", "eb0190909090909090"}))
	require.Contains(t, out.String(), "\x1b[31mJTPR_TARGET\x1b[0m")
}
