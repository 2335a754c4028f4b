package source

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const inlinedText = `
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
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("gcc is not here")
	}
	for _, flag := range []string{"-gdwarf-4", "-gdwarf-5", "-gdwarf-3"} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "a.c"), []byte(inlinedText), 0o600))
		cmd := exec.Command(gcc, flag, "-O2", "-nostdlib", "-static", "-Wl,-e,outer", "-o", "a", "a.c")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
		f, err := Open(filepath.Join(dir, "a"))
		require.NoError(t, err)
		callers, err := f.Inlined()
		require.NoError(t, err)
		require.Equal(t, map[string][]string{"leaf": {"other", "outer"}, "middle": {"outer"}}, callers, flag)
	}
	_, err = (&File{fromBTF: true}).Inlined()
	require.ErrorIs(t, err, ErrNone)
}

// The notes about functions have a bound, for names of any length and any depth of nesting.
func TestInlinedWithoutEnd(t *testing.T) {
	file := func(entries []byte) *File {
		f := unitOf(t, entries)
		// 4 is a function with a name and code, 5 a place where something is inlined.
		f.debug["debug_abbrev"] = append(f.debug["debug_abbrev"][:15], 4, 0x2e, 1, 0x03, 0x08, 0x11, 0x0b, 0, 0, 5, 0x1d, 0, 0x31, 0x13, 0, 0, 0)
		f.abbrevs = map[uint64]abbrevs{}
		return f
	}
	const head = 11 // bytes of the unit before its entries
	function := append(append([]byte{4}, bytes.Repeat([]byte("f"), 100)...), 0, 1)
	at := byte(head + 1)
	entries := append(append([]byte{1}, function...), 5, at, 0, 0, 0, 0, 0)
	callers, err := file(entries).inlinedWithin(noteSize + 100 + noteSize)
	require.NoError(t, err)
	name := string(bytes.Repeat([]byte("f"), 100))
	require.Equal(t, map[string][]string{name: {name}}, callers)
	_, err = file(entries).inlinedWithin(noteSize + 100 + noteSize - 1)
	require.ErrorIs(t, err, ErrTooMuch)
	require.ErrorContains(t, err, "take more than 227 bytes")

	// A place that is noted costs once.
	more := append(append([]byte{1}, function...), bytes.Repeat([]byte{5, at, 0, 0, 0}, 1000)...)
	_, err = file(append(more, 0, 0)).inlinedWithin(noteSize + 100 + noteSize)
	require.NoError(t, err)

	// Entries that lie in each other without end are passed over.
	_, err = file(bytes.Repeat([]byte{1}, 1<<20)).inlinedWithin(1000)
	require.NoError(t, err)
}
