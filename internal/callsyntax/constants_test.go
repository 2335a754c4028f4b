package callsyntax

import (
	"go/ast"
	goparser "go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The constants are those that golang.org/x/sys/unix has of the same name.
func TestConstantsAreLinuxs(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "golang.org/x/sys").Output()
	require.NoError(t, err)
	want := map[string]uint64{}
	for _, file := range []string{"zerrors_linux.go", "zerrors_linux_amd64.go", "ztypes_linux.go", "ztypes_linux_amd64.go", "syscall_linux.go"} {
		f, err := goparser.ParseFile(token.NewFileSet(), filepath.Join(strings.TrimSpace(string(dir)), "unix", file), nil, 0)
		require.NoError(t, err)
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.ValueSpec); ok {
				for i, v := range s.Values {
					if value, ok := literal(v); ok {
						want[s.Names[i].Name] = value
					}
				}
			}
			return true
		})
	}
	require.Greater(t, len(constants()), 400)
	for name, n := range constants() {
		require.Contains(t, want, name)
		require.Equal(t, want[name], n.Value, name)
	}
}

// literal is the value of a number, of -number and of syscall.Signal(number).
func literal(e ast.Expr) (uint64, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		v, err := strconv.ParseInt(e.Value, 0, 64)
		return uint64(v), err == nil
	case *ast.UnaryExpr:
		v, ok := literal(e.X)
		return -v, ok && e.Op == token.SUB
	case *ast.CallExpr:
		return literal(e.Args[0])
	}
	return 0, false
}
