package page_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/page"
)

// answers are the lessons' in their order, in a form that a reader may write, each with
// one that is wrong.
var answers = []struct{ right, wrong string }{
	{"strlen+0x6", "strlen+0x5"},
	{"3", "2"},
	{"1", "2"},
	{"1", "0"},
	{"jsys_open()", "sys_open"},
	{"+3", "+5"},
	{"Optimizing", "freeing"},
	{"", "48"},
}

func TestLessonsAreAnsweredByTheirMachines(t *testing.T) {
	p := &page.Page{}
	var list []page.Lesson
	ask(t, p, map[string]any{"do": "lessons"}, nil, &list)
	require.Len(t, list, len(answers))
	for n, l := range list {
		t.Run(l.Title, func(t *testing.T) {
			require.NotEmpty(t, l.Text)
			require.NotEmpty(t, l.Form)
			try := func(answer string) page.Checked {
				var c page.Checked
				ask(t, p, map[string]any{"do": "check", "lesson": n, "answer": answer}, nil, &c)
				require.NotEmpty(t, c.Says)
				return c
			}
			right := answers[n].right
			if right == "" {
				right = displacement(t, l)
			}
			c := try(" " + right + " ")
			require.True(t, c.Right, "%s: %s", right, c.Says)
			require.Equal(t, l.After, c.Says)
			require.False(t, try(answers[n].wrong).Right)
			require.False(t, try("").Right)
			require.True(t, try(strings.ReplaceAll(right, "0x", "")).Right, "however its number is written")
		})
	}
}

// displacement is the byte of the careless jump that the CPU comes to.
func displacement(t *testing.T, l page.Lesson) string {
	w := watch(t, map[string]any{"probes": l.Scenario.Probes, "calls": l.Scenario.Calls, "careless": true, "release": l.Scenario.Release})
	for _, who := range []string{"a", "m", "w"} {
		w.forward(who, "instruction")
	}
	row := w.code("function").Rows[1]
	require.Equal(t, []string{"CPU 0"}, row.CPUs)
	require.True(t, row.Bytes[0].Poked)
	return row.Bytes[0].Value
}

func TestNoSuchLesson(t *testing.T) {
	for _, q := range []string{`{"do":"check","lesson":-1}`, `{"do":"check","lesson":8}`, `{"do":"check","lesson":"x"}`} {
		require.Contains(t, complaint(t, &page.Page{}, q, nil), "not one that the page has made")
	}
}
