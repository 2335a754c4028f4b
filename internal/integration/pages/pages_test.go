package pages

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A table belongs to the heading above it; a bar in a cell is \|, and a comment in code is no heading.
func TestTablesOfASection(t *testing.T) {
	page := strings.ReplaceAll(`# Title

| a | b |
|---|---|
| 'x', 'y' | 1 |

~~~
# no heading
~~~

| c |
|--:|
| 'p\|q' |
| |

## Next

| d |
|---|
| z |
`, "~~~", "```")
	list := tables(section(strings.ReplaceAll(page, "'", "`"), "Title"))
	require.Equal(t, [][][]string{{{"`x`, `y`", "1"}}, {{"`p|q`"}, {""}}}, list)
	require.Equal(t, []string{"x", "y"}, (&Table{Rows: list[0]}).Names(0))
	require.Equal(t, [][][]string{{{"z"}}}, tables(section(page, "Next")))
	require.Empty(t, tables(section(page, "Nothing")))
}

// failures is a test that notes what fails.
type failures struct {
	testing.TB
	said []string
}

func (f *failures) Helper() {}

func (f *failures) Errorf(format string, args ...any) {
	f.said = append(f.said, fmt.Sprintf(format, args...))
}

// A row too few, a row too many and an empty table are told, each with what to do.
func TestBothDirectionsAreTold(t *testing.T) {
	f := &failures{TB: t}
	Same(f, "docs/x.md", []string{"a", "b"}, []string{"b", "c"})
	require.Equal(t, []string{
		`docs/x.md: write a row for "a": the program has it`,
		`docs/x.md: the program has no "c": take its row out, or write the name as it is`,
	}, f.said)
	f.said = nil
	Same(f, "docs/x.md", nil, nil)
	require.Len(t, f.said, 1)
	f.said = nil
	Same(f, "docs/x.md", []string{"a"}, []string{"a"})
	require.Empty(t, f.said)
}

func TestNamesOfTheProgram(t *testing.T) {
	require.Equal(t, []string{"a", "b"}, Keys(struct {
		A int `json:"a"`
		B int `json:"b,omitempty"`
		C int `json:"-"`
		D int
	}{}))
	file := filepath.Join(t.TempDir(), "x.go")
	require.NoError(t, os.WriteFile(file, []byte("package x\n\n// Names of things.\nconst (\n\tA = \"one: 1\"\n\tB = 2\n)\n\n// Others.\nconst C = \"c\"\n"), 0o600))
	require.Equal(t, []string{"one: 1"}, Constants(t, file, "Names of"))
}
