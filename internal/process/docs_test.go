package process

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/integration/pages"
)

// The messages in the table of docs/uprobes.md are the program's, with dots for the names in them.
func TestPageOfUprobesHasTheMessages(t *testing.T) {
	texts := literals(t)
	number := regexp.MustCompile(`[0-9]+`)
	table := pages.Of(t, "uprobes.md", "Run a program", 1)
	n := 0
	for _, row := range table.Rows {
		for _, message := range pages.Quoted(row[2]) {
			for part := range strings.SplitSeq(message, "…") {
				if part = strings.TrimSpace(part); !strings.Contains(part, " ") {
					continue // a name, as of a system call
				}
				n++
				counted := number.ReplaceAllString(part, "%d")
				if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, part) || strings.Contains(text, counted) }) {
					t.Errorf("%s: no message is %q: write it as the program does", table.Where, message)
				}
			}
		}
	}
	require.Greater(t, n, 3)
}

// literals are the texts of the package's files.
func literals(t *testing.T) (list []string) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				text, err := strconv.Unquote(l.Value)
				require.NoError(t, err)
				list = append(list, text)
			}
			return true
		})
	}
	return list
}
