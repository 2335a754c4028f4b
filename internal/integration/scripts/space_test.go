//go:build linux && amd64

package scripts

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPathWithABlank: in a clone in a folder whose name has a blank, the program builds, the
// demonstration and the generators run, and the files are the same.
func TestPathWithABlank(t *testing.T) {
	for _, tool := range []string{"git", "make", "gcc", "go", "sh"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not on PATH, and a build needs it", tool)
		}
	}
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	deps := filepath.Join(root, ".deps")
	if _, err := os.Stat(filepath.Join(deps, "unicorn", "version")); err != nil {
		t.Skip("make deps has not run here, and nothing is fetched for a test")
	}
	dir := filepath.Join(t.TempDir(), "a b", "clone")
	files := workingTree(t, root, dir)
	require.NoError(t, os.Symlink(deps, filepath.Join(dir, ".deps")))
	sh := func(script string) string {
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", script)
		cmd.Dir = dir
		// Flags that lead to this tree must not stand in for the copy's own.
		cmd.Env = append(os.Environ(), "CGO_CFLAGS=", "CGO_LDFLAGS=", "GOFLAGS=-buildvcs=false", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s:\n%s", script, out)
		return string(out)
	}
	require.Contains(t, sh("make -n test"), "scripts/check.sh test")
	require.Contains(t, sh(`eval "$(make -s env)"; echo "$CGO_CFLAGS"`), "'-I"+dir+"/.deps/unicorn/include'")
	require.Contains(t, sh("make deps; make -n check demo hostile IMAGE='x y'"), "'x y'")
	sh(`eval "$(make -s env)"; go build ./emu`)
	if testing.Short() {
		t.Skip("builds of the whole program take a minute")
	}
	if strings.Contains(root, " ") {
		t.Skip("this tree has a blank in its path, so all that make does here is that test")
	}
	require.Contains(t, sh("make demo IMAGE=testdata/guest.elf"), "crc32_le(0xffffffff")
	sh("CGO_ENABLED=0 go generate ./...")
	for _, f := range files {
		want, err := os.ReadFile(filepath.Join(root, f))
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(dir, f))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, got), "%s is another file after the generators", f)
	}
}

// workingTree copies the files of the tree that git tracks, in their present state, and returns the
// names.
func workingTree(t *testing.T, from, to string) []string {
	out, err := exec.CommandContext(t.Context(), "git", "-C", from, "ls-files", "-z", "--cached").Output()
	if err != nil {
		t.Skip("not a git checkout: nothing says which files are the project's")
	}
	files := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(from, f))
		require.NoError(t, err)
		i, err := os.Stat(filepath.Join(from, f))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(to, f)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(to, f), b, i.Mode().Perm()))
	}
	return files
}
