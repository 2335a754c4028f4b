package page_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/page"
)

// answers are the lessons' in their order, in the forms that readers write, and wrong ones, the
// first of which has a reason of its own.
var answers = []struct{ right, wrong []string }{
	{[]string{"strlen+0x6", "strlen+6", " strlen + 0x06 ", "0xffffffff81000016", "STRLEN+0X6"}, []string{"strlen+0x5", "strlen+0x8", "strlen", "6"}},
	{[]string{"3", "0x3", "three"}, []string{"2", "-3"}},
	{[]string{"1", "once", "One"}, []string{"2", "twice", "0"}},
	{[]string{"1", "one"}, []string{"0", "none", "2"}},
	{[]string{"jsys_open", "jsys_open()", "jsys_open+0x0"}, []string{"sys_open", "sys_open()", "jprobe_return", "strlen"}},
	{[]string{"+3", "3", "0x3", "+0x03", "opt_no_jump_in+0x3", "opt_no_jump_in+3"}, []string{"+9", "opt_no_jump_in", "0", "+5"}},
	{[]string{"Optimizing", "optimizing_list", "the optimizing list"}, []string{"freeing", "unoptimizing_list", "hits"}},
	{[]string{"00", "0", "0x00"}, []string{"e9", "48", "0xe9", "100"}},
}

func lessons(t *testing.T) (p *page.Page, list []page.Lesson) {
	p = &page.Page{}
	ask(t, p, map[string]any{"do": "lessons"}, nil, &list)
	require.Len(t, list, len(answers))
	return p, list
}

// Answers are judged by what they mean; one that many give has a reason of its own, and the hint
// names none of those.
func TestLessonsAreAnsweredByTheirMachines(t *testing.T) {
	p, list := lessons(t)
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
			for _, answer := range answers[n].right {
				c := try(answer)
				require.True(t, c.Right, "%s: %s", answer, c.Says)
				require.Equal(t, l.After, c.Says)
			}
			require.False(t, try("").Right)
			for i, answer := range answers[n].wrong {
				c := try(answer)
				require.False(t, c.Right, answer)
				if i == 0 {
					require.NotContains(t, c.Says, "The machine does something else", answer)
					require.NotContains(t, strings.Fields(l.Form), answer)
				}
			}
		})
	}
}

// lessonMachine is a lesson's machine at its beginning.
func lessonMachine(t *testing.T, l page.Lesson) *watched {
	w := watch(t, map[string]any{
		"probes": l.Scenario.Probes, "calls": l.Scenario.Calls, "careless": l.Scenario.Careless,
		"release": l.Scenario.Release, "lead": l.Lead, "by": l.By,
	})
	w.Schedule = l.Start
	w.ask(nil)
	return w
}

// said returns the event of a step, or its sentence.
func (w *watched) shown() string {
	if w.Sub < 0 {
		return w.Did
	}
	return w.Events[w.Sub].Who + ": " + w.event()
}

// Each lesson is done by pressing Forward, or as its text says, in its own mode, in no more presses
// than a reader makes.
func TestLessonsAreDoneAsTheyAreWritten(t *testing.T) {
	_, list := lessons(t)
	shows := [][]string{
		{"CPU 0: pre handler", "CPU 0: resume at the copy in the slot, interrupts off"},
		{"CPU 0: the call at the fentry site led to the tracer's trampoline, which built a frame; ip is one past the site's address"},
		{"CPU 0: int3 at the probed address; ip is one past it"},
		{"CPU 1: no free instance: this return is missed"},
		{"CPU 0: the pre handler returned non-zero: the trampoline returns to where it left ip", "CPU 0: int3 in jprobe_return: the saved registers and stack are back"},
		{"CPU 0: int3 at the probed address; ip is one past it"},
		{
			"worker: a task is inside a call and has not given up its CPU yet: the worker goes on waiting",
			"CPU 0 ran 5 instructions and returned 10.",
			"CPU 1: the jump at the probed address led to the detour buffer, which built a frame and calls optimized_callback",
		},
		{"CPU 0 executed 00 3f at opt_yes+0x3, the inside of the jump, and failed: page fault at opt_yes+0x3/0x10 (0xffffffff81002de3): read of 0x1. This is an oops."},
	}
	for n, l := range list {
		t.Run(l.Title, func(t *testing.T) {
			w := lessonMachine(t, l)
			var said []string
			for w.Moved = true; w.Moved && len(said) < 40; w.forward("", l.By) {
				said = append(said, w.shown())
			}
			require.Empty(t, w.Next, "it comes to its end")
			require.True(t, strings.HasPrefix(w.Schedule, l.Lead), w.Schedule)
			require.Subset(t, said, shows[n])
			int3 := strings.Contains(strings.Join(said, ""), "int3 at the probed address")
			require.True(t, int3 || !strings.Contains(l.Question, "int3"), "the question is about an event that the machine has not")
		})
	}
}

// The answer of lesson 5 is on the page at the event that its text names.
func TestTheJprobesHandlerIsShown(t *testing.T) {
	_, list := lessons(t)
	w := lessonMachine(t, list[4])
	for !strings.Contains(w.shown(), "returned non-zero") {
		w.forward("", list[4].By)
		require.True(t, w.Moved)
	}
	require.Equal(t, "ip", w.CPUs[0].Regs[0].Name)
	require.Equal(t, "jsys_open", w.CPUs[0].Regs[0].Means)
}

// CPU 0's Step is one instruction in lesson 8. With the worker's wait there is no crash.
func TestTheRaceThatTheWaitPrevents(t *testing.T) {
	_, list := lessons(t)
	l := list[7]
	require.NotContains(t, l.Title, "text_poke")
	require.Contains(t, l.After, "synchronize_rcu_tasks")
	for _, careless := range []bool{true, false} {
		l.Scenario.Careless, l.Lead = careless, ""
		w := lessonMachine(t, l)
		w.forward("a", l.By)
		require.Equal(t, "a", w.Schedule)
		w.forward("m", l.By)
		for range 30 {
			w.forward("w", l.By)
		}
		row := w.code("function").Rows[1]
		require.Equal(t, []string{"CPU 0"}, row.CPUs)
		require.Equal(t, careless, row.Bytes[0].Poked)
		w.forward("a", l.By)
		require.Equal(t, careless, strings.Contains(w.Did, "oops"), w.Did)
	}
}

func TestNoSuchLesson(t *testing.T) {
	for _, q := range []string{`{"do":"check","lesson":-1}`, `{"do":"check","lesson":8}`, `{"do":"check","lesson":"x"}`} {
		require.Contains(t, complaint(t, &page.Page{}, q, nil), "not one that the page has made")
	}
}
