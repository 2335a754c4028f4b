package source

import (
	"fmt"
	"path"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// lineOf are the functions and the lines of statements, as text, counted from the line of work.
func lineOf(t *testing.T, f *File, w Statements) (out []string) {
	work, err := f.Lines(Where{Function: "work"}, 0, -1)
	require.NoError(t, err)
	require.NoError(t, f.Statements(w, func(p *Place) error {
		out = append(out, fmt.Sprintf("%s:%d in %s", p.Function, p.Line-work.Base, p.Symbol))
		return nil
	}))
	slices.Sort(out)
	return slices.Compact(out)
}

func TestStatements(t *testing.T) {
	f := opened(t, forms["dwarf_5"]...)
	work, err := f.Lines(Where{Function: "work"}, 0, -1)
	require.NoError(t, err)
	line := func(no int) [][2]int { return [][2]int{{work.Base + no, work.Base + no}} }
	// Lines 0 and 1 begin at the same address; if all are wanted, the address belongs to the
	// last one.
	whole := []string{"work:0 in work", "work:1 in work", "work:2 in work", "work:3 in work"}
	copies := []string{"twice:-7 in last", "twice:-7 in one", "twice:-7 in two"}
	for name, c := range map[string]struct {
		w    Statements
		want []string
	}{
		"all lines of a function":                {Statements{Function: "work", File: "a.c"}, whole[1:]},
		"a line":                                 {Statements{Function: "work", File: "a.c", Lines: line(2)}, whole[2:3]},
		"from the declaration on":                {Statements{Function: "work", File: "a.c", Lines: [][2]int{{2, 2}}, Relative: true}, whole[2:3]},
		"from one to another":                    {Statements{Function: "work", File: "a.c", Lines: [][2]int{{work.Base + 1, work.Base + 2}}}, whole[1:3]},
		"a list":                                 {Statements{Function: "work", File: "a.c", Lines: append(line(1), line(3)...)}, []string{whole[1], whole[3]}},
		"more lines than the file has":           {Statements{Function: "work", File: "a.c", Lines: [][2]int{{0, 1 << 40}}}, []string{whole[0], whole[2], whole[3]}},
		"each copy":                              {Statements{Function: "twice", File: "a.c", Lines: line(-7)}, copies},
		"a copy's line is its function's, too":   {Statements{Function: "o*", File: "a.c", Lines: line(-7)}, []string{"one:-7 in one"}},
		"a pattern of files":                     {Statements{Function: "work", File: "*.c", Lines: line(2)}, whole[2:3]},
		"the end of a file's name alone":         {Statements{Function: "work", File: ".c", Lines: line(2)}, nil},
		"the end of a file's name, as a pattern": {Statements{Function: "work", File: "*.[!h]", Lines: line(2)}, whole[2:3]},
		"another file":                           {Statements{Function: "work", File: "b.c"}, nil},
		"no code, and the nearest":               {Statements{Function: "work", File: "a.c", Lines: line(6), Nearest: true}, []string{"work:4 in work"}},
		"no code near, and the nearest":          {Statements{Function: "work", File: "a.c", Lines: line(60), Nearest: true}, nil},
		"no code, of several":                    {Statements{Function: "work", File: "a.c", Lines: line(6)}, nil},
		"no code in one of several is no error":  {Statements{Function: "work", File: "a.c", Lines: [][2]int{{work.Base + 3, work.Base + 4}}}, whole[3:]},
		"backwards":                              {Statements{Function: "work", File: "a.c", Lines: [][2]int{{work.Base + 4, work.Base}}}, nil},
		"an inner function's line, of none else": {Statements{Function: "work", File: "a.c", Lines: line(-7)}, nil},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, lineOf(t, f, c.w)) })
	}
	for name, c := range map[string]struct {
		w    Statements
		want string
	}{
		"with what is near":        {Statements{Lines: line(6)}, fmt.Sprintf("a.c:%d (try :%d)", work.Base+6, work.Base+4)},
		"from its declaration on":  {Statements{Lines: [][2]int{{6, 6}}, Relative: true}, fmt.Sprintf("a.c:%d (try :%d)", work.Base+6, work.Base+4)},
		"with nothing near":        {Statements{Lines: line(60)}, fmt.Sprintf("a.c:%d", work.Base+60)},
		"with nothing near enough": {Statements{Lines: line(60), Nearest: true}, fmt.Sprintf("a.c:%d", work.Base+60)},
	} {
		t.Run("a line without code "+name, func(t *testing.T) {
			c.w.Function, c.w.File, c.w.Single = "work", "a.c", true
			var rows *NoRows
			require.ErrorAs(t, f.Statements(c.w, func(*Place) error { return nil }), &rows)
			rows.File = path.Base(rows.File)
			require.EqualError(t, rows, "no line records for "+c.want)
		})
	}
}

// Rule: what has no location is not visible, an outer block's variables are.
func TestVisible(t *testing.T) {
	f := opened(t, forms["dwarf_5"]...)
	for _, p := range places(t, f, Where{Function: "work"}) {
		list, err := p.Visible()
		require.NoError(t, err)
		var names []string
		for _, v := range list {
			names = append(names, v.Name)
		}
		require.Equal(t, []string{"o", "n", "text"}, names[:3])
	}
	var names []string
	require.NoError(t, f.Statements(Statements{Function: "last", File: "a.c"}, func(p *Place) error {
		list, err := p.Visible()
		for _, v := range list {
			names = append(names, v.Name)
		}
		return err
	}))
	require.Contains(t, names, "r")
	require.Contains(t, names, "local")
	require.NotContains(t, names, "x", "a copy's variables are its own")
}
