package hostfiles

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "out")
	require.NoError(t, Write(file, []File{{Path: "/x", Mode: 0o755, Data: []byte("one")}}))
	require.NoError(t, Write(file, []File{{Path: "/x", Data: []byte("two")}}), "again")
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "two", string(b))
	tree := []File{{Path: "/g", Mode: fs.ModeDir}, {Path: "/g/a", Mode: fs.ModeDir}, {Path: "/g/a/b", Data: []byte("b")}}
	for range 2 {
		require.NoError(t, Write(filepath.Join(dir, "tree"), tree))
	}
	b, err = os.ReadFile(filepath.Join(dir, "tree/a/b"))
	require.NoError(t, err)
	require.Equal(t, "b", string(b))
	require.NoError(t, Write(file, nil))
}

// TestPlacesThatAreNotWritten: no link is written through, no path leads out.
func TestPlacesThatAreNotWritten(t *testing.T) {
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	require.NoError(t, os.WriteFile(secret, []byte("secret"), 0o600))
	require.NoError(t, os.Symlink(secret, filepath.Join(dir, "link")))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "tree"), 0o755))
	require.NoError(t, os.Symlink("..", filepath.Join(dir, "tree/up")))
	require.NoError(t, os.Symlink("tree", filepath.Join(dir, "way")))
	top := File{Path: "/g", Mode: fs.ModeDir}
	for name, c := range map[string]struct {
		host  string
		files []File
	}{
		"link":                {"link", []File{{Path: "/x"}}},
		"folder_for_a_file":   {"tree", []File{{Path: "/x"}}},
		"file_for_a_folder":   {"secret", []File{top}},
		"link_for_a_folder":   {"way", []File{top}},
		"path_upwards":        {"tree", []File{top, {Path: "/g/../../secret"}}},
		"another_path":        {"tree", []File{top, {Path: "/etc/x"}}},
		"through_a_link":      {"tree", []File{top, {Path: "/g/up/secret"}}},
		"link_inside":         {"tree", []File{top, {Path: "/g/up"}}},
		"device":              {"new", []File{{Path: "/x", Mode: fs.ModeDevice}}},
		"folder_is_not_there": {"none/new", []File{{Path: "/x"}}},
	} {
		require.Error(t, Write(filepath.Join(dir, c.host), c.files), name)
		b, err := os.ReadFile(secret)
		require.NoError(t, err, name)
		require.Equal(t, "secret", string(b), name)
	}
}
