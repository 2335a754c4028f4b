package inlined_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/inlined"
)

// compiled is a program made of C, with or without DWARF.
func compiled(t *testing.T, source string, flags ...string) string {
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("gcc is not here")
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.c"), []byte(source), 0o600))
	cmd := exec.Command(gcc, append(flags, "-O2", "-nostdlib", "-static", "-Wl,-e,outer", "-o", "a", "a.c")...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return filepath.Join(dir, "a")
}

const source = `
volatile int v;
static inline __attribute__((always_inline)) void leaf(void) { v++; }
static inline __attribute__((always_inline)) void middle(void) { leaf(); v--; }
__attribute__((noinline)) void other(void) { leaf(); }
__attribute__((noinline)) void plain(void) { v = 2; }
void outer(void) { { int i; for (i = 0; i < v; i++) middle(); } other(); plain(); }
`

// Rule: the function that has the code in the end is named, through what is inlined
// between; one that is called is not.
func TestCallersOfWhatIsInlined(t *testing.T) {
	for _, flag := range []string{"-gdwarf-4", "-gdwarf-5"} {
		callers, err := inlined.Read(compiled(t, source, flag))
		require.NoError(t, err)
		require.Equal(t, map[string][]string{"leaf": {"other", "outer"}, "middle": {"outer"}}, callers, flag)
	}
}

func TestWithoutDWARF(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	require.NoError(t, os.WriteFile(text, []byte("no ELF"), 0o600))
	for _, name := range []string{compiled(t, source), text, t.TempDir(), "/dev/null"} {
		_, err := inlined.Read(name)
		require.ErrorIs(t, err, inlined.ErrNone, name)
	}
	_, err := inlined.Read(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
