package hostfiles

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
)

// TestWantedFiles: what the host has and the guest has not is named once, many files of a folder as the folder.
func TestWantedFiles(t *testing.T) {
	root := t.TempDir()
	files := map[string]any{"usr/bin/tool": tiny{}, "usr/bin/ls": tiny{}, "etc/conf": "x", "etc/ld.so.cache": "x", "usr/share/one": "x", "proc/x": "x", "usr/share/data/x": "x", "folder/x/y": "x"}
	for i := range 5 {
		files[fmt.Sprint("usr/lib/python/m", i, ".py")] = "x"
	}
	lay(t, root, files)
	has := func(p string) bool { return slices.Contains([]string{"/bin/ls", "/usr/share/one"}, p) }
	got := (&Set{Root: root}).Wanted([]string{
		"/usr/local/bin/tool", "/usr/bin/tool", "/usr/bin/ls", "/etc/conf", "/etc/ld.so.cache", "/usr/share/one", "/none", "/proc/x", "/folder/x", "/none/libx.so.1", "/usr/lib", "/usr/share/data",
		"/usr/lib/python/m0.py", "/usr/lib/python/m1.py", "/usr/lib/python/m2.py", "/usr/lib/python/m3.py",
	}, has)
	require.Equal(t, []string{"/etc/conf", "/usr/bin/tool", "/usr/lib/python", "/usr/share/data"}, got)
	var many []string
	for i := range bounded.WantedFiles + 5 {
		name := fmt.Sprint("d", i, "/f")
		lay(t, root, map[string]any{name: "x"})
		many = append(many, "/"+name)
	}
	require.Len(t, (&Set{Root: root}).Wanted(many, has), bounded.WantedFiles)
}
