package outfile

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A temporary file beside an output has a random name and is created with O_EXCL. So another user of the folder cannot
// redirect it by a link.
func TestLinksInTheWayOfOutputs(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o777|os.ModeSticky))
	victim := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.WriteFile(victim, []byte("mine"), 0o600))
	out := filepath.Join(dir, "out")
	names := map[string]bool{}
	for range 20 {
		o, err := Create(out)
		require.NoError(t, err)
		require.False(t, names[o.Name()], "the same name a second time")
		names[o.Name()] = true
		// Somebody has seen the name, and puts a link there: what is written stays in the file that was made.
		if os.Remove(o.Name()) == nil {
			require.NoError(t, os.Symlink(victim, o.Name()))
		}
		_, err = o.WriteString("theirs")
		require.NoError(t, err)
		_ = o.Done(nil)
		_ = os.Remove(out)
		b, err := os.ReadFile(victim)
		require.NoError(t, err)
		require.Equal(t, "mine", string(b))
	}
	require.Len(t, names, 20)
	// The names of those before are no help: each is a link now, and the next one is none of them.
	for name := range names {
		_ = os.Symlink(victim, name)
	}
	require.NoError(t, Write(out, []byte("whole")))
	b, err := os.ReadFile(victim)
	require.NoError(t, err)
	require.Equal(t, "mine", string(b))
}

// No file is made in the system's folder of temporary files but by os.MkdirTemp and os.CreateTemp, which take no link and
// no name that can be known before.
func TestTemporaryFilesHaveNamesThatNobodyKnows(t *testing.T) {
	known := regexp.MustCompile(`os\.TempDir\(\)|os\.(Create|WriteFile|OpenFile|Mkdir|MkdirAll)\("/(tmp|var/tmp|dev/shm)`)
	require.NoError(t, filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "testdata") && file != "../..":
			return filepath.SkipDir
		case d.IsDir(), !strings.HasSuffix(file, ".go"), strings.HasSuffix(file, "_test.go"):
			return nil
		}
		b, err := os.ReadFile(file)
		require.False(t, known.Match(b), "%s: os.MkdirTemp or os.CreateTemp make a temporary file: %s", file, known.Find(b))
		return err
	}))
}
