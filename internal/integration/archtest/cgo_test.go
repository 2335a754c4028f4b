package archtest

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const unicorn = "github.com/unicorn-engine/unicorn"

func TestOnlyEmuUsesCgo(t *testing.T) {
	for _, p := range goList(t, "1") {
		if p.ours() == "" || p.ours() == "emu" {
			continue
		}
		if len(p.CgoFiles) > 0 {
			t.Errorf("%s uses cgo, in %v; only emu may", p.ours(), p.CgoFiles)
		}
		if slices.ContainsFunc(p.Imports, func(i string) bool { return strings.HasPrefix(i, unicorn) }) {
			t.Errorf("%s imports the Unicorn binding; only emu may", p.ours())
		}
	}
}

// needsCgo may be empty without cgo. Everything else has to be there.
var needsCgo = []string{"emu"}

func TestCgoFreeTreeIsWhole(t *testing.T) {
	without := map[string]goPackage{}
	for _, p := range goList(t, "0") {
		without[p.ImportPath] = p
		if p.Module != nil && p.Module.Path == unicorn {
			t.Errorf("without cgo, something still links %s", p.ImportPath)
		}
		if p.ours() != "" && p.Error != nil {
			t.Errorf("without cgo, %s: %s", p.ours(), p.Error.Err)
		}
	}
	for _, p := range goList(t, "1") {
		if p.ours() == "" || slices.Contains(needsCgo, p.ours()) || len(p.GoFiles) == 0 {
			continue
		}
		if len(without[p.ImportPath].GoFiles) == 0 {
			t.Errorf("%s has no files without cgo", p.ours())
		}
	}
}

// A program that imports the library is built by Go alone, also where there is a C compiler: only the tag unicorn takes Unicorn.
func TestLibraryNeedsGoAlone(t *testing.T) {
	for _, p := range goListTagged(t, "1", "") {
		if p.ours() != "" {
			require.Empty(t, p.CgoFiles, "%s uses cgo without the tag unicorn", p.ours())
			require.Nil(t, p.Error, p.ours())
		}
		if p.Module != nil {
			require.NotEqual(t, unicorn, p.Module.Path, "without the tag unicorn, something links %s", p.ImportPath)
		}
	}
	cmd := exec.Command("go", "build", "-tags=", ".", "./kprobestest", "./internal/tools/conformance/program")
	cmd.Dir = repositoryRoot(t)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1", "CGO_CFLAGS=", "CGO_LDFLAGS=", "C_INCLUDE_PATH=", "CPATH=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
}
