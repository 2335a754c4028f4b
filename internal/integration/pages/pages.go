// Package pages reads the tables of docs/ for tests, which compare a table with the one that the program has. Only tests import it.
package pages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Table is a table of a page. Each row has the text of its cells.
type Table struct {
	// Where names the page and the heading, for messages.
	Where string
	Rows  [][]string
}

// Read returns the text of a page, by its path below docs/.
func Read(t testing.TB, page string) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil && dir != filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	text, err := os.ReadFile(filepath.Join(dir, "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Of returns the nth table, from 0, of the section of a page that begins with a heading, up to the next heading.
func Of(t testing.TB, page, heading string, n int) *Table {
	t.Helper()
	list := tables(section(Read(t, page), heading))
	where := "docs/" + page + ", " + heading
	if n >= len(list) {
		t.Fatalf("%s: there is no table %d", where, n)
	}
	return &Table{Where: where, Rows: list[n]}
}

// section returns the lines between a heading and the next one. A page's first heading is for the lines before the second.
func section(page, heading string) (lines []string) {
	in, code := false, false
	for line := range strings.Lines(page) {
		code = code != strings.HasPrefix(line, "```")
		if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && !code && strings.HasPrefix(line, "#") {
			in = strings.TrimSpace(title) == heading
			continue
		}
		if in {
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}
	return lines
}

var ruler = regexp.MustCompile(`^\|[ :|-]+\|$`)

// tables returns the rows below each ruler.
func tables(lines []string) (list [][][]string) {
	for i := 0; i < len(lines); i++ {
		if !ruler.MatchString(lines[i]) {
			continue
		}
		var rows [][]string
		for i++; i < len(lines) && strings.HasPrefix(lines[i], "|"); i++ {
			rows = append(rows, cells(lines[i]))
		}
		list = append(list, rows)
	}
	return list
}

// cells splits a row at its bars, but not at \|.
func cells(row string) (list []string) {
	row = strings.ReplaceAll(strings.Trim(row, "|"), `\|`, "\x00")
	for cell := range strings.SplitSeq(row, "|") {
		list = append(list, strings.TrimSpace(strings.ReplaceAll(cell, "\x00", "|")))
	}
	return list
}

// Column returns a cell of each row.
func (tab *Table) Column(n int) (list []string) {
	for _, row := range tab.Rows {
		list = append(list, row[n])
	}
	return list
}

// Names returns the words in backquotes of a column, in the order of the rows.
func (tab *Table) Names(n int) (list []string) {
	for _, cell := range tab.Column(n) {
		list = append(list, Quoted(cell)...)
	}
	return list
}

var quoted = regexp.MustCompile("`([^`]+)`")

// Quoted returns the words in backquotes of a text.
func Quoted(text string) (list []string) {
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		list = append(list, m[1])
	}
	return list
}

// Same fails for each name that only the program has, or only the page. The message says which line to write, or to take out.
func Same(t testing.TB, where string, program, page []string) {
	t.Helper()
	Named(t, where, program, page)
	for _, name := range page {
		if !slices.Contains(program, name) {
			t.Errorf("%s: the program has no %q: take its row out, or write the name as it is", where, name)
		}
	}
}

// Named fails for each name of the program that the page has not.
func Named(t testing.TB, where string, program, page []string) {
	t.Helper()
	if len(program) == 0 || len(page) == 0 {
		t.Errorf("%s: there is nothing to compare: %d names of the program, %d of the page", where, len(program), len(page))
	}
	for _, name := range program {
		if !slices.Contains(page, name) {
			t.Errorf("%s: write a row for %q: the program has it", where, name)
		}
	}
}

// Keys returns the names of a structure's fields in JSON.
func Keys(of any) (list []string) {
	typ := reflect.TypeOf(of)
	for f := range typ.NumField() {
		if name, _, _ := strings.Cut(typ.Field(f).Tag.Get("json"), ","); name != "" && name != "-" {
			list = append(list, name)
		}
	}
	return list
}

// Constants returns the texts of a group of constants of a Go file. The group is known by the first words of its comment.
func Constants(t testing.TB, file, comment string) (list []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		group, ok := d.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST || !strings.HasPrefix(group.Doc.Text(), comment) {
			continue
		}
		for _, s := range group.Specs {
			for _, v := range s.(*ast.ValueSpec).Values {
				if text, ok := v.(*ast.BasicLit); ok && text.Kind == token.STRING {
					value, err := strconv.Unquote(text.Value)
					if err != nil {
						t.Fatal(err)
					}
					list = append(list, value)
				}
			}
		}
	}
	return list
}
