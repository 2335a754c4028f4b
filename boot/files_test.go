package boot

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/qemu"
)

func entries(list []File) (all []qemu.Entry) {
	for _, f := range list {
		all = append(all, f.entry)
	}
	return all
}

func names(list []qemu.Entry) (n []string) {
	for _, e := range list {
		n = append(n, e.Name)
	}
	return n
}

// A folder comes with all that is in it, links as links and permissions kept; a socket is
// left out.
func TestFilesOfAFolder(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "tree/sub"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tree/tool"), []byte("x"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tree/sub/data"), nil, 0o600))
	require.NoError(t, os.Symlink("tool", filepath.Join(dir, "tree/link")))
	require.NoError(t, os.Symlink("tree", filepath.Join(dir, "way")))
	if l, err := net.Listen("unix", filepath.Join(dir, "tree/socket")); err == nil {
		defer l.Close()
	}
	list, err := Files(filepath.Join(dir, "way"), "/opt")
	require.NoError(t, err)
	files := entries(list)
	require.Equal(t, []string{"/opt", "/opt/link", "/opt/sub", "/opt/sub/data", "/opt/tool"}, names(files))
	require.Equal(t, "tool", string(files[1].Data))
	require.Equal(t, uint32(qemu.ModeFile|0o600), files[3].Mode)
	require.Equal(t, uint32(qemu.ModeFile|0o755), files[4].Mode)

	list, err = Files(filepath.Join(dir, "tree/tool"), "/bin/x")
	require.NoError(t, err)
	require.Equal(t, []string{"/bin/x"}, names(entries(list)))
	_, err = Files(filepath.Join(dir, "missing"), "/x")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Files(dir, "x")
	require.Error(t, err)
}

// The kernel makes no folder by itself, and unpacks in order.
func TestFoldersComeFirst(t *testing.T) {
	list := folders([]File{
		{qemu.Entry{Name: "/usr/bin/b/c", Mode: qemu.ModeFile}}, {qemu.Entry{Name: "/usr/bin-x", Mode: qemu.ModeFile}}, {qemu.Entry{Name: "/usr/bin/a", Mode: qemu.ModeFile}},
		{qemu.Entry{Name: "/usr/bin", Mode: qemu.ModeFolder | 0o700}}, {qemu.Entry{Name: "/usr/bin/a", Mode: qemu.ModeLink}}, {qemu.Entry{Name: "/", Mode: qemu.ModeFolder}},
	})
	require.Equal(t, []string{"/usr", "/usr/bin", "/usr/bin/a", "/usr/bin/b", "/usr/bin/b/c", "/usr/bin-x"}, names(list))
	require.Equal(t, uint32(qemu.ModeFolder|0o700), list[1].Mode, "a folder that is named has its own permissions")
	require.Equal(t, uint32(qemu.ModeLink), list[2].Mode, "the later one counts")
}

func TestCheckOutput(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, CheckOutput(file))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, CheckOutput(file))
	require.ErrorIs(t, CheckOutput(dir), ErrOutput)
	require.ErrorIs(t, CheckOutput(filepath.Join(dir, "missing/file")), os.ErrNotExist)
	require.Error(t, CheckOutput(filepath.Join(file, "x")))
}
