package frontdoor

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// published is the path that the tests give to the module: go get can ask for it.
const published = "example.org/x/kprobelab"

// renamedTree copies the files that git tracks, and gives the copy's module the published path by make module.
func renamedTree(t *testing.T) (dir string, files []string) {
	t.Helper()
	for _, tool := range []string{"git", "make", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not on PATH, and the test needs it", tool)
		}
	}
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	out, err := exec.Command("git", "-C", root, "ls-files", "-z", "--cached").Output()
	if err != nil {
		t.Skip("not a git checkout: nothing says which files are the project's")
	}
	dir = filepath.Join(t.TempDir(), "a clone") // with a blank
	for f := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		b, err := os.ReadFile(filepath.Join(root, f))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		i, err := os.Stat(filepath.Join(root, f))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, f)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, f), b, i.Mode().Perm()))
		files = append(files, f)
	}
	cmd := exec.CommandContext(t.Context(), "make", "--no-print-directory", "module", "PATH="+published)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "MAKEFLAGS=", "MAKELEVEL=0")
	said, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.Regexp(t, `^the module is `+regexp.QuoteMeta(published)+` now: \d{3,} files changed\n$`, string(said))
	return dir, files
}

// proxy publishes a tree as version v0.1.0 in a folder, in the form that GOPROXY=file:// reads.
func proxy(t *testing.T, tree string, files []string) string {
	t.Helper()
	dir := t.TempDir()
	versions := filepath.Join(dir, filepath.FromSlash(published), "@v")
	require.NoError(t, os.MkdirAll(versions, 0o755))
	var below []string // folders that are modules of their own
	for _, f := range files {
		if filepath.Base(f) == "go.mod" && f != "go.mod" {
			below = append(below, filepath.Dir(f)+"/")
		}
	}
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	for _, f := range files {
		if slices.ContainsFunc(below, func(m string) bool { return strings.HasPrefix(f, m) }) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(tree, f))
		require.NoError(t, err)
		e, err := w.Create(published + "@v0.1.0/" + f)
		require.NoError(t, err)
		_, err = e.Write(text)
		require.NoError(t, err)
	}
	require.NoError(t, w.Close())
	mod, err := os.ReadFile(filepath.Join(tree, "go.mod"))
	require.NoError(t, err)
	info, err := json.Marshal(map[string]string{"Version": "v0.1.0", "Time": "2026-01-01T00:00:00Z"})
	require.NoError(t, err)
	for name, text := range map[string][]byte{"list": []byte("v0.1.0\n"), "v0.1.0.info": info, "v0.1.0.mod": mod, "v0.1.0.zip": packed.Bytes()} {
		require.NoError(t, os.WriteFile(filepath.Join(versions, name), text, 0o644))
	}
	return dir
}

// The path is in no import, no go.mod and no generator any more, the files are formatted, and the packages build.
func TestModuleOfAnotherPath(t *testing.T) {
	tree, files := renamedTree(t)
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	var sources []string
	for _, f := range files {
		if strings.HasSuffix(f, ".go") && !strings.Contains(f, "testdata/") {
			sources = append(sources, filepath.Join(tree, f))
		}
	}
	out, err := exec.Command(filepath.Join(strings.TrimSpace(string(goroot)), "bin", "gofmt"), append([]string{"-l"}, sources...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, string(out), "gofmt has something to change")

	list := exec.Command("go", "list", "-e", "-test", "-tags=unicorn", "-f", "{{.ImportPath}} {{with .Error}}{{.}}{{end}}", "./...")
	list.Dir, list.Env = tree, append(os.Environ(), "GOWORK=off")
	out, err = list.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for line := range strings.Lines(string(out)) {
		require.Regexp(t, `^`+regexp.QuoteMeta(published)+`[^ ]*( \[[^]]*\])? \n$`, line, "a package of the old path, or one that is not found")
	}
	cmd := exec.Command("git", "grep", "--no-index", "-nE", `go doc kprobelab/|"kprobelab/(kprobes|x86)`, "--", "*.md", "*.go.txt")
	cmd.Dir = tree
	out, err = cmd.CombinedOutput()
	require.Error(t, err, "%s", out)
}

// A test of another module gets the library from a proxy that is a folder, and runs where there is no compiler of C.
func TestImporterNeedsGoAlone(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the library once more")
	}
	tree, files := renamedTree(t)
	modules, err := exec.Command("go", "env", "GOMODCACHE", "GOROOT", "GOCACHE").Output()
	require.NoError(t, err)
	env := strings.Split(strings.TrimSpace(string(modules)), "\n")
	dir := t.TempDir()
	source, err := os.ReadFile("testdata/importer_test.go.txt")
	require.NoError(t, err)
	text := strings.ReplaceAll(string(source), `"kprobelab/`, `"`+published+`/`)
	require.NotContains(t, text, `"kprobelab`)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "importer_test.go"), []byte(text), 0o600))
	own := filepath.Join(t.TempDir(), "modules")
	t.Cleanup(func() {
		_ = filepath.WalkDir(own, func(name string, _ os.DirEntry, _ error) error { return os.Chmod(name, 0o700) }) // read-only
	})
	for _, args := range [][]string{{"mod", "init", "importer"}, {"get", published + "/kprobestest"}, {"test", "-count=1", "-v", "."}} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(env[1], "bin", "go"), args...)
		cmd.Dir = dir
		cmd.Env = []string{"HOME=" + dir, "PATH=" + filepath.Join(env[1], "bin"), "GOCACHE=" + env[2], "GOMODCACHE=" + own, "GOSUMDB=off", "GOFLAGS=",
			"GOTOOLCHAIN=local", "GOPROXY=file://" + proxy(t, tree, files) + ",file://" + filepath.Join(env[0], "cache", "download")}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "go %s\n%s", strings.Join(args, " "), out)
		if args[0] == "test" {
			require.Contains(t, string(out), "--- PASS: TestSnprintf")
		}
	}
	sums, err := os.Open(filepath.Join(dir, "go.sum"))
	require.NoError(t, err)
	defer sums.Close()
	all, err := io.ReadAll(sums)
	require.NoError(t, err)
	require.Contains(t, string(all), published+" v0.1.0 h1:")
}

// The commands and the test that README shows are what somebody types in a new folder.
func TestReadmeImports(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the library once more")
	}
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(readme), "## In a test of your own\n")
	require.True(t, found)
	section, _, _ = strings.Cut(section, "\n## ")
	commands := regexp.MustCompile(`(?m)^    (go .*)$`).FindAllStringSubmatch(section, -1)
	require.Len(t, commands, 3)
	code := regexp.MustCompile("(?s)```go\n(.*)```").FindStringSubmatch(section)
	require.NotNil(t, code)
	where, err := exec.Command("go", "env", "GOMODCACHE").Output()
	require.NoError(t, err)
	dir := t.TempDir()
	run := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=", "GOSUMDB=off", "GOPROXY=file://"+filepath.Join(strings.TrimSpace(string(where)), "cache", "download"))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", strings.Join(args, " "), out)
		return string(out)
	}
	for _, c := range commands {
		var words []string
		for _, w := range strings.Fields(c[1]) {
			words = append(words, strings.ReplaceAll(w, "CHECKOUT", root))
		}
		run(words...)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "probes_test.go"), []byte(code[1]), 0o600))
	require.Contains(t, run("go", "test", "-count=1", "-v", "."), "--- PASS: TestGcd")
}
