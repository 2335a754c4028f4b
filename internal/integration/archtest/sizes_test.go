package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Rule: a file has at most 600 lines, a function 60, a package 25 exported names. testdata/sizes.txt names all others, with the
// most that each may have, and the reason for which it is not cut. Tests, and names of methods and fields, do not count.
func TestNothingGrowsPastItsSize(t *testing.T) {
	usual := map[string]int{"file": 600, "function": 60, "exported": 25}
	allowed := sizesAllowed(t)
	found := sizes(t)
	require.Greater(t, len(found), 1000)
	for what, size := range found {
		kind, _, _ := strings.Cut(what, " ")
		most, ok := allowed[what]
		if !ok {
			most = usual[kind]
		}
		if size > most {
			t.Errorf("%s: %d, at most %d: cut it by concept, or say in testdata/sizes.txt why it stays", what, size, most)
		}
		if ok && size <= usual[kind] {
			t.Errorf("%s is small: its line in testdata/sizes.txt can go", what)
		}
		delete(allowed, what)
	}
	require.Empty(t, allowed, "in testdata/sizes.txt, and not there")
}

// sizesAllowed reads testdata/sizes.txt: SIZE KIND NAME: REASON.
func sizesAllowed(t *testing.T) map[string]int {
	text, err := os.ReadFile(filepath.Join("testdata", "sizes.txt"))
	require.NoError(t, err)
	allowed := map[string]int{}
	for line := range strings.Lines(string(text)) {
		if size, what, ok := strings.Cut(strings.TrimSpace(line), " "); ok && size != "#" {
			n, err := strconv.Atoi(size)
			require.NoError(t, err, line)
			name, reason, _ := strings.Cut(what, ": ")
			require.NotEmpty(t, reason, line)
			allowed[name] = n
		}
	}
	return allowed
}

// sizes measures files, functions and packages of the repository.
func sizes(t *testing.T) map[string]int {
	root := repositoryRoot(t)
	found := map[string]int{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "dist") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return measure(found, path, filepath.ToSlash(name))
	}))
	return found
}

func measure(found map[string]int, path, name string) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	found["file "+name] = set.File(file.Pos()).LineCount() - 1
	for _, d := range file.Decls {
		for _, of := range exportedIn(d) {
			if ast.IsExported(of) {
				found["exported "+filepath.ToSlash(filepath.Dir(name))]++
			}
		}
		if f, ok := d.(*ast.FuncDecl); ok {
			what := fmt.Sprintf("function %s %s", name, f.Name.Name)
			found[what] = max(found[what], set.Position(f.End()).Line-set.Position(f.Pos()).Line+1)
		}
	}
	return nil
}

// exportedIn returns the names of a declaration outside methods.
func exportedIn(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				names = append(names, s.Name.Name)
			case *ast.ValueSpec:
				for _, n := range s.Names {
					names = append(names, n.Name)
				}
			}
		}
	}
	return names
}
