package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// readers are the files that may read a whole file by themselves: the bounded reader, and the
// readers of files of the host's kernel.
var readers = []string{
	"internal/bounded/bounded.go", "internal/bounded/open.go", "internal/bounded/pipe_other.go",
	"kernels/running.go", "internal/mount/mount.go", "internal/mount/process.go",
}

// ourOwn are folders of which every input is the project's own: its tools and
// its tests.
var ourOwn = []string{"internal/tools/", "internal/integration/", "testdata/", "kprobestest/", "."}

var wholeRead = regexp.MustCompile(`\b(io\.ReadAll|os\.ReadFile|os\.Open|ioutil\.Read\w+|\.ReadString|\.ReadBytes)\(`)

// Whatever a user names is read by a bounded reader: a device never ends.
func TestEveryReadIsBounded(t *testing.T) {
	root := "../../.."
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator)))
		ours := slices.ContainsFunc(ourOwn, func(p string) bool { return strings.HasPrefix(name, p) })
		if err != nil || d.IsDir() || ours || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || slices.Contains(readers, name) {
			return err
		}
		text, err := os.ReadFile(file)
		require.Empty(t, wholeRead.FindString(string(text)), "%s: use package internal/bounded", name)
		return err
	}))
}
