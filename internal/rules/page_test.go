package rules

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The page for people, and the parts of it that can go stale.
const page = "../../docs/rules.md"

var (
	ruleRow  = regexp.MustCompile(`(?m)^\| (\d[\d.]*)(?:, [^|]*)? \| [^|]+ \| ([^|]+) \| ([^|]+) \|$`)
	pageLink = regexp.MustCompile("\\[`([^`]+)`\\]\\(\\.\\./([^)]+)\\)")
	testFunc = regexp.MustCompile(`(?m)^func (Test(?:Rule\d|KUnit_)\w*)\(t \*testing\.T\)`)
	ruleOf   = regexp.MustCompile(`^TestRule(\d+(?:_\d+)*)`)
)

// TestPageOfRules holds docs/rules.md to the code: the functions and tests
// that it names are in the files that it links, every rule has a test, and
// every test that is named after a rule has its rule there.
func TestPageOfRules(t *testing.T) {
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	rows := ruleRow.FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(rows), 40)
	known := map[string]bool{}
	for _, row := range rows {
		known[row[1]] = true
		where, tests := pageLink.FindAllStringSubmatch(row[2], -1), pageLink.FindAllStringSubmatch(row[3], -1)
		require.NotEmpty(t, where, "rule %s: no code", row[1])
		require.NotEmpty(t, tests, "rule %s: no test", row[1])
		for _, link := range where {
			require.Regexp(t, `\b`+regexp.QuoteMeta(link[1])+`\b`, source(t, link[2]), "rule %s: %s", row[1], link[2])
		}
		for _, link := range tests {
			require.Contains(t, source(t, link[2]), "\nfunc "+link[1]+"(t *testing.T)", "rule %s: %s", row[1], link[2])
		}
	}
	for name, file := range testsOfRules(t) {
		if strings.HasPrefix(name, "TestKUnit_") {
			require.Contains(t, string(text), "`"+name+"`", file)
		} else {
			require.True(t, onPage(known, ruleOf.FindStringSubmatch(name)[1]), "%s in %s: docs/rules.md has no such rule", name, file)
		}
	}
}

// onPage finds a test's rule, or the rule that it is a step of. Jump
// optimization, the tracer's events and the decoder have no rows.
func onPage(known map[string]bool, number string) bool {
	parts := strings.Split(number, "_")
	switch parts[0] {
	case "4", "9", "11":
		return true
	}
	for n := len(parts); n > 0; n-- {
		if known[strings.Join(parts[:n], ".")] {
			return true
		}
	}
	return false
}

func source(t *testing.T, file string) string {
	b, err := os.ReadFile(filepath.Join("../..", file))
	require.NoError(t, err)
	return string(b)
}

// testsOfRules are the tests of the tree that are named after a rule, and
// where they are.
func testsOfRules(t *testing.T) map[string]string {
	found := map[string]string{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "../.." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		b, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllStringSubmatch(string(b), -1) {
			found[m[1]] = path
		}
		return err
	})
	require.NoError(t, err)
	require.Greater(t, len(found), 80)
	return found
}
