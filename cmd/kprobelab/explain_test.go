package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
	require.Equal(t, "kprobelab: "+errNoAssembler.Error()+"\n", stderr)
}

// TestBootFiles: the image is what there has to be; of the rest it is said what
// could be read.
func TestBootFiles(t *testing.T) {
	dir := t.TempDir()
	_, err := findBoot(dir, "6.1.0-56-cloud-amd64")
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "the running kernel's image cannot be read: open "+dir+"/vmlinuz-6.1.0-56-cloud-amd64: no such file or directory; name an IMAGE")
	_, err = findBoot(dir, "")
	require.ErrorIs(t, err, errNoRelease)

	image := filepath.Join(dir, "vmlinuz-6.1")
	require.NoError(t, os.WriteFile(image, nil, 0o600))
	b, err := findBoot(dir, "6.1")
	require.NoError(t, err)
	require.Equal(t, image, b.image)
	require.Empty(t, b.config)
	require.Equal(t, "running kernel 6.1, read from /boot: vmlinuz-6.1, config-6.1 not (there is none)", b.String())

	require.NoError(t, os.WriteFile(filepath.Join(dir, "config-6.1"), nil, 0o600))
	b, err = findBoot(dir, "6.1")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "config-6.1"), b.config)
	require.True(t, strings.HasSuffix(b.String(), ": vmlinuz-6.1, config-6.1"), b.String())
}

// TestExplainColours: on a terminal only; a pipe gets none (explain.txtar).
func TestExplainColours(t *testing.T) {
	var out bytes.Buffer
	term := newTerm(&out, &out)
	term.out, term.outStyle = &printable.Writer{W: &out, Colour: true}, true
	require.NoError(t, newApp(term).Run(t.Context(), []string{"kprobelab", "explain", "--hex", "eb0190909090909090"}))
	require.Contains(t, out.String(), "\x1b[31mJTPR_TARGET\x1b[0m")
}
