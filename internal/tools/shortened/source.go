package main

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A declaration is a function, a method or a variable of test files.
type declaration struct {
	names map[string]bool // what it mentions
	asks  bool            // it calls what shortens a test
}

// tests lists the tests, examples and fuzz targets of a folder that are shortened.
func tests(folder string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	all := map[string]*declaration{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		declarations(folder, f, all)
	}
	var found []string
	for name := range all {
		if isTest.MatchString(name) && asks(all, name, map[string]bool{}) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found, nil
}

var isTest = regexp.MustCompile(`^(Test|Example|Fuzz)([^a-z]|$)`)

// asks reports whether a declaration, or one that it leads to, asks for -short or for a dump.
func asks(all map[string]*declaration, name string, seen map[string]bool) bool {
	d := all[name]
	if d == nil || seen[name] {
		return false
	}
	seen[name] = true
	if d.asks {
		return true
	}
	for next := range d.names {
		if asks(all, next, seen) {
			return true
		}
	}
	return false
}

// declarations adds a file's. Those of one name are one: methods of several types, functions under several build
// constraints.
func declarations(folder string, f *ast.File, all map[string]*declaration) {
	calls := shortening(f)
	add := func(name string, n ast.Node) {
		d := all[name]
		if d == nil {
			d = &declaration{names: map[string]bool{}}
			all[name] = d
		}
		d.read(folder, calls, n)
	}
	for _, decl := range f.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			add(decl.Name.Name, decl)
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				if spec, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range spec.Names {
						add(name.Name, spec)
					}
				}
			}
		}
	}
}

// shortening returns which names of which packages shorten a test of a file, by the file's imports. rapid makes a
// fifth of its checks with -short.
func shortening(f *ast.File) map[string]*regexp.Regexp {
	calls := map[string]*regexp.Regexp{}
	for _, i := range f.Imports {
		file, _ := strconv.Unquote(i.Path.Value)
		name := path.Base(file)
		if i.Name != nil {
			name = i.Name.Name
		}
		switch {
		case file == "testing":
			calls[name] = short
		case file == "pgregory.net/rapid":
			calls[name] = checks
		case strings.Contains(file+"/", "/integration/dumps/"):
			calls[name] = dumps
		}
	}
	return calls
}

// The names in testing, in rapid and in the packages of dumps; the latter have lists, too, which take no dump.
var (
	short  = regexp.MustCompile(`^Short$`)
	checks = regexp.MustCompile(`^(Check|MakeCheck|MakeFuzz)$`)
	dumps  = regexp.MustCompile(`^(File|One)$`)
)

func (d *declaration) read(folder string, calls map[string]*regexp.Regexp, n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			d.names[n.Name] = true
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && calls[x.Name] != nil && calls[x.Name].MatchString(n.Sel.Name) {
				d.asks = true
			}
		case *ast.BasicLit:
			if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				d.asks = d.asks || shortScripts(filepath.Join(folder, text))
			}
		}
		return true
	})
}

// shortScripts reports whether a folder has a script with the condition [short].
func shortScripts(folder string) bool {
	scripts, _ := filepath.Glob(filepath.Join(folder, "*.txt*"))
	return slices.ContainsFunc(scripts, func(name string) bool {
		text, err := os.ReadFile(name)
		return err == nil && bytes.Contains(text, []byte("short]"))
	})
}
