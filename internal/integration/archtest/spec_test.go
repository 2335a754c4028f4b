package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	specHeading = regexp.MustCompile(`(?m)^#+ (\d+[a-z]?(?:\.\d+)*)\b`)
	// A citation: docs/spec 1.5, 2.6 to 2.8 and 14.5, also over the end of a line.
	specCited  = regexp.MustCompile(`docs/spec(?:\s+(?://|#)?)?\s(\d+[a-z]?(?:\.\d+)*(?:(?:,\s|\sand\s|\sto\s)\d+(?:\.\d+)+)*)`)
	specNumber = regexp.MustCompile(`\d+[a-z]?(?:\.\d+)*`)
)

// TestCitedSectionsExist: where a file cites docs/spec, the section is there.
func TestCitedSectionsExist(t *testing.T) {
	root := repositoryRoot(t)
	sections := map[string]bool{}
	pages, err := filepath.Glob(filepath.Join(root, "docs/spec/*.md"))
	require.NoError(t, err)
	for _, page := range pages {
		for _, m := range specHeading.FindAllStringSubmatch(readFile(t, page), -1) {
			require.False(t, sections[m[1]], "docs/spec has two sections %s", m[1])
			sections[m[1]] = true
		}
	}
	cited := 0
	for file, text := range citingFiles(t, root) {
		for _, m := range specCited.FindAllStringSubmatch(text, -1) {
			for _, number := range specNumber.FindAllString(m[1], -1) {
				cited++
				require.True(t, sections[number], "%s cites docs/spec %s, which does not exist", file, number)
			}
		}
	}
	require.Greater(t, cited, 100)
}

func readFile(t *testing.T, file string) string {
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(b)
}

// citingFiles are the texts of the tree that mention docs/spec with a number.
func citingFiles(t *testing.T, root string) map[string]string {
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !d.Type().IsRegular() || !strings.Contains(".go .c .h .md .txt .S .s", filepath.Ext(path)) || filepath.Ext(path) == "":
			return nil
		}
		if text := readFile(t, path); strings.Contains(text, "docs/spec") {
			found[path] = text
		}
		return nil
	})
	require.NoError(t, err)
	return found
}
