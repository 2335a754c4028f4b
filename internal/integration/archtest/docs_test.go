package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// parsed has the files of a package, with their comments, that a build with cgo sees.
func parsed(t *testing.T, fset *token.FileSet, p *goPackage) []*ast.File {
	t.Helper()
	var list []*ast.File
	for _, name := range append(p.GoFiles, p.CgoFiles...) {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
		require.NoError(t, err)
		list = append(list, f)
	}
	return list
}

// library reports whether other modules may import the package.
func library(p *goPackage) bool {
	return p.ours() != "" && p.Name != "main" && !strings.HasPrefix(p.ours(), "internal/")
}

// A package's doc says its one job, then what it must not know.
func TestPackageDocSaysWhatItMustNotKnow(t *testing.T) {
	for _, p := range goList(t, "1") {
		if p.ours() == "" {
			continue
		}
		var doc string
		for _, f := range parsed(t, token.NewFileSet(), &p) {
			doc += f.Doc.Text()
		}
		if strings.TrimSpace(doc) == "" {
			t.Errorf("%s has no package comment", p.ours())
		} else if flat := strings.Join(strings.Fields(doc), " "); library(&p) && !strings.Contains(flat, "must not know") {
			t.Errorf("the package comment of %s does not say what it must not know", p.ours())
		}
	}
}

func TestExportedNamesHaveADoc(t *testing.T) {
	for _, p := range goList(t, "1") {
		if !library(&p) {
			continue
		}
		fset := token.NewFileSet()
		for _, f := range parsed(t, fset, &p) {
			for _, name := range undocumented(f) {
				t.Errorf("%s: %s has no doc sentence", fset.Position(name.Pos()), name.Name)
			}
		}
	}
}

// undocumented lists the exported names that a file declares without a comment of their own or of
// their group.
func undocumented(f *ast.File) []*ast.Ident {
	var list []*ast.Ident
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) {
				list = append(list, d.Name)
			}
		case *ast.GenDecl:
			if d.Doc == nil || d.Tok == token.TYPE && d.Lparen.IsValid() {
				list = append(list, undocumentedSpecs(d)...)
			}
		}
	}
	return list
}

func undocumentedSpecs(d *ast.GenDecl) []*ast.Ident {
	var list []*ast.Ident
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			if s.Doc == nil && s.Name.IsExported() {
				list = append(list, s.Name)
			}
		case *ast.ValueSpec:
			for _, n := range s.Names {
				if s.Doc == nil && s.Comment == nil && n.IsExported() {
					list = append(list, n)
				}
			}
		}
	}
	return list
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if generic, ok := typ.(*ast.IndexExpr); ok {
		typ = generic.X
	}
	name, ok := typ.(*ast.Ident)
	return !ok || name.IsExported()
}
