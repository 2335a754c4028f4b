package bounded

import (
	"flag"
	"fmt"
	"go/ast"
	"go/constant"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the table of limits into SECURITY.md")

// limit is a constant of the files of limits.
type limit struct{ name, figure, doc, test string }

// limits reads the constants of limits*.go with their docs.
func limits(t *testing.T) (list []limit) {
	t.Helper()
	set := token.NewFileSet()
	names, err := filepath.Glob("limits*.go")
	require.NoError(t, err)
	var files []*ast.File
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
			require.NoError(t, err)
			files = append(files, f)
		}
	}
	info := &types.Info{Defs: map[*ast.Ident]types.Object{}}
	_, err = (&types.Config{Importer: importer.Default()}).Check("bounded", set, files, info)
	require.NoError(t, err)
	for _, f := range files {
		list = append(list, limitsOf(t, f, info)...)
	}
	return list
}

func limitsOf(t *testing.T, f *ast.File, info *types.Info) (list []limit) {
	t.Helper()
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		name := v.Names[0].Name
		doc, test, ok := strings.Cut(strings.Join(strings.Fields(v.Doc.Text()), " "), " Test: ")
		require.True(t, ok, "%s: its doc has no line \"Test: TestName\"", name)
		require.True(t, strings.HasPrefix(doc, name+" ") && strings.HasSuffix(doc, "."), "%s: its doc is no sentence about it: %s", name, doc)
		value, exact := constant.Int64Val(constant.ToInt(info.Defs[v.Names[0]].(*types.Const).Val()))
		require.True(t, exact, name)
		figure := fmt.Sprint(value)
		if strings.Contains(doc, "bytes") {
			figure = size(value)
		}
		list = append(list, limit{name, figure, strings.TrimPrefix(doc, name+" "), test})
		return false
	})
	return list
}

// TestEveryLimitIsNamed compares the table in SECURITY.md with limits.go. Each row names a test, and the test is there.
func TestEveryLimitIsNamed(t *testing.T) {
	const page, begin, end = "../../SECURITY.md", "<!-- limits -->\n", "<!-- end of limits -->\n"
	var table strings.Builder
	table.WriteString("| limit | figure | what it bounds | test |\n|---|---|---|---|\n")
	tests := testNames(t)
	for _, l := range limits(t) {
		require.True(t, tests[l.test], "%s names the test %q, which is nowhere", l.name, l.test)
		fmt.Fprintf(&table, "| `%s` | %s | %s | `%s` |\n", l.name, l.figure, l.doc, l.test)
	}
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok)
	have, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+table.String()+end+after), 0o644))
		return
	}
	require.Equal(t, table.String(), have, "go test ./internal/bounded -update")
}

// testNames are the tests of the repository.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	found, names := regexp.MustCompile(`(?m)^func (Test\w+)\(`), map[string]bool{}
	require.NoError(t, filepath.WalkDir("../..", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		text, err := os.ReadFile(file)
		for _, m := range found.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
		return err
	}))
	return names
}
