package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/tools/licence"
)

func TestLinkedLicencesGoWithGPL2(t *testing.T) {
	for _, p := range goList(t, "1") {
		if p.Standard || p.ours() != "" {
			continue
		}
		require.NotNil(t, p.Module, p.ImportPath)
		require.NotEmpty(t, p.Module.Dir, "%s is not downloaded", p.Module.Path)
		of, err := licence.Of(p.Module.Dir, p.Dir)
		require.NoError(t, err)
		if of.Name == "" {
			t.Errorf("%s: its licence is not one that GPL-2.0 may link (text: %q)", p.ImportPath, of.File)
		}
		requireNoApacheFile(t, &p)
	}
}

// A file may carry other terms than its module does.
func requireNoApacheFile(t *testing.T, p *goPackage) {
	t.Helper()
	for _, f := range append(p.GoFiles, p.CgoFiles...) {
		text, err := os.ReadFile(filepath.Join(p.Dir, f))
		require.NoError(t, err)
		if head := string(text[:min(len(text), 2048)]); strings.Contains(head, "Apache-2.0") || strings.Contains(head, "Apache License") {
			t.Errorf("%s: %s is under the Apache licence", p.ImportPath, f)
		}
	}
}

func TestProjectLicenceIsGPL2(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repositoryRoot(t), "LICENSE"))
	require.NoError(t, err)
	require.Equal(t, "GPL-2.0", licence.Classify(string(text)))
}
