package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// front is the name of the root package, as the tables of these tests have it.
const front = "kprobelab"

// module is the project's module path, and so the prefix of its packages; make module changes it.
var module = modulePath()

func modulePath() string {
	text, err := os.ReadFile("../../../go.mod")
	if err != nil {
		panic(err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimPrefix(line, "module ")
}

// goPackage holds the fields of go list -json that these tests read.
type goPackage struct {
	Dir, ImportPath, Name string
	Standard              bool
	GoFiles, CgoFiles     []string
	Imports, Deps         []string
	Module                *struct{ Path, Dir string }
	Error                 *struct{ Err string }
}

// ours is the package's path within the project, front for the root,
// and "" for a foreign one.
func (p *goPackage) ours() string {
	if p.ImportPath == module {
		return front
	}
	name, ok := strings.CutPrefix(p.ImportPath, module+"/")
	if !ok {
		return ""
	}
	return name
}

func repositoryRoot(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(root, "go.mod"))
	return root
}

// goList lists the project's packages and all they link, without their tests,
// as a build for linux/amd64 with the tag unicorn, and with or without cgo, sees them.
func goList(t *testing.T, cgo string) []goPackage {
	t.Helper()
	return goListTagged(t, cgo, "unicorn")
}

// goListTagged is goList with other build tags.
func goListTagged(t *testing.T, cgo, tags string) []goPackage {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("the go command is not on PATH, and these tests ask it for the packages")
	}
	cmd := exec.Command("go", "list", "-e", "-deps", "-tags="+tags,
		"-json=Dir,ImportPath,Name,Standard,GoFiles,CgoFiles,Imports,Deps,Module,Error", "./...")
	cmd.Dir = repositoryRoot(t)
	cmd.Env = append(os.Environ(), "CGO_ENABLED="+cgo, "GOOS=linux", "GOARCH=amd64")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())

	var list []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else {
			require.NoError(t, err)
		}
		list = append(list, p)
	}
}
