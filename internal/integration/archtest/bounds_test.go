package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A bound is known by its name, or by the first words of its doc.
var (
	boundName = regexp.MustCompile(`^([mM]ax|[mM]ost|limit)([A-Z]|$)|(Max|Most|Limit)$`)
	boundDoc  = regexp.MustCompile(`^\w+ (bounds|is the (most|longest|largest|maximum)) `)
)

// bounds lists the constants of a file that bound something with a figure of their own, as PACKAGE.NAME.
func bounds(t *testing.T, folder, file string) (list []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	require.NoError(t, err)
	ast.Inspect(f, func(n ast.Node) bool {
		g, ok := n.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			return true
		}
		for _, s := range g.Specs {
			v := s.(*ast.ValueSpec)
			doc := v.Doc.Text()
			if doc == "" && !g.Lparen.IsValid() {
				doc = g.Doc.Text()
			}
			for i, name := range v.Names {
				if i < len(v.Values) && isFigure(v.Values[i]) && (boundName.MatchString(name.Name) || boundDoc.MatchString(doc)) {
					list = append(list, folder+"."+name.Name)
				}
			}
		}
		return true
	})
	return list
}

// isFigure reports whether a value is a literal number: not a text, and not computed from a limit.
func isFigure(value ast.Expr) bool {
	number, limit := false, false
	ast.Inspect(value, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			number = number || n.Kind == token.INT
		case *ast.Ident:
			limit = limit || n.Name == "bounded"
		}
		return true
	})
	return number && !limit
}

// facts reads the list of constants that look like bounds, but bound nothing that a file, a script,
// a guest or a user can make large. A line is PACKAGE.NAME: KIND. The kinds: kernel and tool (their
// own limit, at which they refuse too), format (the room in a form of file or in a processor),
// layout (the room in a structure of this program's own), shown (the number of named entries of a
// longer list), piece (the amount of work done at a time, whatever the length), search (the
// distance over which code is examined for a pattern).
func facts(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/facts.txt")
	require.NoError(t, err)
	m, before := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		name, kind, ok := strings.Cut(strings.TrimSpace(line), ": ")
		require.True(t, ok, line)
		require.Contains(t, []string{"kernel", "tool", "format", "layout", "shown", "piece", "search"}, kind, line)
		require.Less(t, before, name, "the list is sorted, and names each once")
		m[name], before = kind, name
	}
	return m
}

// A limit on a thing that a file, a script, a guest or a user can make large is in
// internal/bounded, with its doc and its test; a constant that looks like a limit but is none is in
// the list of facts.
func TestEveryBoundHasOneHome(t *testing.T) {
	root, known, found := "../../..", facts(t), map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(file, root+string(filepath.Separator)))
		skipped := slices.ContainsFunc([]string{".", "internal/tools/", "internal/integration/", "internal/bounded/"}, func(p string) bool { return strings.HasPrefix(name, p) })
		if err != nil || d.IsDir() || skipped || strings.Contains(name, "testdata/") || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		for _, b := range bounds(t, filepath.ToSlash(filepath.Dir(name)), file) {
			found[b] = true
			if known[b] == "" {
				t.Errorf("%s is a bound: it belongs into internal/bounded, with the test that holds it. If nothing outside of the program can make it matter, name it in testdata/facts.txt", b)
			}
		}
		return nil
	}))
	for name := range known {
		if !found[name] {
			t.Errorf("testdata/facts.txt: there is no %s", name)
		}
	}
}

// The rule sees a new bound in each of its forms, and nothing else.
func TestBoundsAreSeen(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.go")
	require.NoError(t, os.WriteFile(file, []byte(`package x

import "kprobelab/internal/bounded"

const maxDepth = 12
const MaxDepth, other = 3 << 4, 1
const (
	// pieces bounds the pieces of a thing.
	pieces = 100
	// deep is the largest depth of a thing.
	deep = 7
	// stackLimit is one by its name.
	stackLimit int64 = 1 << 9
	maxText = "a text"
	maxOurs = 2 * bounded.Lines
	maximal = 5
)
var maxThings = 4

func f() {
	const most = 20
	const maxInside = maxDepth + 1
}
`), 0o600))
	require.Equal(t, []string{"x.maxDepth", "x.MaxDepth", "x.pieces", "x.deep", "x.stackLimit", "x.most", "x.maxInside"}, bounds(t, "x", file))
}
