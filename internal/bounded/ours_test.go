//go:build unix

package bounded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What another user can change is not ours.
func TestFilesOfAnotherUser(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		mode  os.FileMode
		owner int
		ours  bool
	}{
		"private": {0o600, -1, true}, "read_by_all": {0o644, -1, true}, "written_by_the_group": {0o664, -1, true}, "written_by_all": {0o666, -1, false},
		"sticky_folder_for_all": {0o777 | os.ModeSticky | os.ModeDir, -1, false}, "anothers": {0o600, 12345, false}, "anothers_for_all": {0o666, 12345, false},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, name)
			if c.mode.IsDir() {
				require.NoError(t, os.Mkdir(file, 0o700))
			} else {
				require.NoError(t, os.WriteFile(file, nil, 0o600))
			}
			require.NoError(t, os.Chmod(file, c.mode&^os.ModeDir))
			if c.owner >= 0 && os.Chown(file, c.owner, -1) != nil {
				t.Skip("to give a file away takes root")
			}
			link := file + ".link"
			require.NoError(t, os.Symlink(file, link))
			for _, f := range []string{file, link} {
				if err := Ours(f); c.ours {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, ErrOthers)
				}
			}
		})
	}
	require.ErrorIs(t, Ours(filepath.Join(dir, "none")), os.ErrNotExist)
}
