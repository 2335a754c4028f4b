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

// The page, and the patterns of the names on it.
const page = "../../../docs/rules.md"

var (
	ruleRow  = regexp.MustCompile(`(?m)^\| (\d[\d.]*)(?:, [^|]*)? \| [^|]+ \| ([^|]+) \| ([^|]+) \|$`)
	pageLink = regexp.MustCompile("\\[`([^`]+)`\\]\\(\\.\\./([^)]+)\\)")
	testFunc = regexp.MustCompile(`(?m)((?:^//.*\n)*)^func (Test\w*)\(t \*testing\.T\)`)
	ruleOf   = regexp.MustCompile(`docs/spec(?:\n//)? (\d+(?:\.\d+)*)`)
)

// TestPageOfRules compares docs/rules.md with the code: the functions and tests
// that it names are in the files that it links, every rule has a test, and
// every rule that a test's comment cites is there.
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
	for name, test := range testsOfRules(t) {
		if strings.HasPrefix(name, "TestKUnit_") {
			require.Contains(t, string(text), "`"+name+"`", test.file)
		}
		for _, rule := range test.rules {
			require.True(t, onPage(known, rule), "%s in %s: docs/rules.md has no rule %s", name, test.file, rule)
		}
	}
}

// onPage finds a rule, or the rule of which it is a step. Words, the tracer's events and the
// decoder have no rows.
func onPage(known map[string]bool, number string) bool {
	parts := strings.Split(number, ".")
	switch parts[0] {
	case "0", "9", "11":
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
	b, err := os.ReadFile(filepath.Join("../../..", file))
	require.NoError(t, err)
	return string(b)
}

// ruleTest is a test's file, and the rules that the test's comment cites.
type ruleTest struct {
	file  string
	rules []string
}

// testsOfRules are the tests of the tree that cite a rule, and the kernel's own
// unit tests.
func testsOfRules(t *testing.T) map[string]ruleTest {
	found := map[string]ruleTest{}
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "../../.." && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		b, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllStringSubmatch(string(b), -1) {
			test := ruleTest{file: path}
			for _, cited := range ruleOf.FindAllStringSubmatch(m[1], -1) {
				test.rules = append(test.rules, cited[1])
			}
			if len(test.rules) > 0 || strings.HasPrefix(m[2], "TestKUnit_") {
				found[m[2]] = test
			}
		}
		return err
	})
	require.NoError(t, err)
	require.Greater(t, len(found), 80)
	return found
}
