package page_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/page"
)

func lessons(t *testing.T) (p *page.Page, list []page.Lesson) {
	p = &page.Page{}
	ask(t, p, map[string]any{"do": "lessons"}, nil, &list)
	require.Len(t, list, 11, "ten lessons and an appendix")
	return p, list
}

// Each lesson's file is played by its own text in its own mode: Forward comes to the question's moment, where one answer is
// true, and the variation's way comes to its goal.
func TestLessonsAreDoneAsTheyAreWritten(t *testing.T) {
	files, err := filepath.Glob("lessons/*.json")
	require.NoError(t, err)
	require.Len(t, files, 11)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			require.NoError(t, page.CheckLesson(b))
			require.True(t, page.IsLesson(b))
		})
	}
}

// The machine tells the right answer, and each wrong one has its reason.
func TestLessonsAreAnsweredByTheirMachines(t *testing.T) {
	right := map[string]string{
		"int3": "strlen+0x6", "slot": "into the slot", "ftrace": "e8, a call", "ip": "3", "two": "one", "return": "one",
		"nmissed": "Its handler does not run, and the hit is counted as missed", "jump": "No, it stays an int3", "optimizer": "It waits", "races": "It fails", "jprobe": "jsys_open",
	}
	p, list := lessons(t)
	for _, l := range list {
		t.Run(l.ID, func(t *testing.T) {
			require.Len(t, l.Answers, 3)
			whys := map[string]bool{}
			for i, a := range l.Answers {
				var said page.Predicted
				ask(t, p, map[string]any{"do": "predict", "of": l, "answer": i}, nil, &said)
				require.Equal(t, a.Text == right[l.ID], said.Right, a.Text)
				require.Equal(t, right[l.ID], l.Answers[said.Answer].Text)
				require.Equal(t, a.Why, said.Why)
				require.NotEqual(t, l.Start, said.Schedule, "there is something to play")
				whys[a.Why] = true
			}
			require.Len(t, whys, 3)
		})
	}
}

// A variation's goal is judged by the reader's machine, whatever order it has taken.
func TestGoalsAreStates(t *testing.T) {
	p, list := lessons(t)
	reached := func(l page.Lesson, s page.Scenario, schedule string, sub int) bool {
		var g page.Goal
		ask(t, p, map[string]any{"do": "goal", "scenario": s, "schedule": schedule, "sub": sub, "by": l.By, "goal": l.Vary.Goal}, nil, &g)
		return g.Reached
	}
	one := list[0]
	moved := one.Vary.Way.Scenario
	require.False(t, reached(one, one.Scenario, "ma9", -1))
	require.False(t, reached(one, moved, "ma3", 0), "the trap, and not yet the pre handler")
	require.True(t, reached(one, moved, "ma3", 1))
	six := list[5]
	require.False(t, reached(six, six.Scenario, "m", -1))
	require.Contains(t, complaint(t, p, `{"do":"goal","scenario":{"calls":"gcd(1, 2)"},"schedule":"a","sub":7}`, nil), "not one that the page has made")
}

// A file that cannot be played is refused with a sentence that says why.
func TestLessonsThatCannotBePlayed(t *testing.T) {
	good, err := os.ReadFile("lessons/01-int3.json")
	require.NoError(t, err)
	change := func(path string, value any) []byte {
		var m map[string]any
		require.NoError(t, json.Unmarshal(good, &m))
		at := any(m)
		parts := strings.Split(path, ".")
		for _, part := range parts[:len(parts)-1] {
			if list, ok := at.([]any); ok {
				at = list[part[0]-'0']
			} else {
				at = at.(map[string]any)[part]
			}
		}
		last := parts[len(parts)-1]
		if value == nil {
			delete(at.(map[string]any), last)
		} else {
			at.(map[string]any)[last] = value
		}
		b, err := json.Marshal(m)
		require.NoError(t, err)
		return b
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"empty":               {nil, "it is no lesson: EOF"},
		"cut":                 {good[:100], "it is no lesson: unexpected EOF"},
		"a_comma_too_many":    {[]byte("{\n\"lesson\": 1,\n}"), "it is no lesson: line 3: invalid character"},
		"an_unknown_word":     {change("questoin", "x"), `unknown field "questoin"`},
		"a_number_as_text":    {change("lesson", "1"), "lesson is a string"},
		"a_later_version":     {change("lesson", 2), `"lesson" is 2: this program reads version 1`},
		"no_title":            {change("title", nil), `the lesson has no "title"`},
		"no_goal":             {change("vary.goal", nil), `the lesson has no "vary.goal"`},
		"another_mode":        {change("by", "step"), `"by" is "step"`},
		"one_answer":          {change("answers", []any{}), "the lesson has 0 answers"},
		"no_reason":           {change("answers.1.why", ""), `answer 2 lacks its "text", its "when" or its "why"`},
		"another_event":       {change("until.happened", "bang"), `"happened" is "bang": events are trap, missed, pre`},
		"another_state":       {change("answers.0.when.state", "gone"), `"state" is "gone"`},
		"bytes_of_no_place":   {change("until.bytes", "cc"), `"bytes" and "place" go together`},
		"times_of_nothing":    {change("answers.0.when.times", 1), `"times" goes with "happened"`},
		"another_change":      {change("vary.change", []string{"weather"}), `"vary.change" has "weather"`},
		"no_such_function":    {change("scenario.calls", "nosuch(1)"), "nosuch"},
		"no_such_probe":       {change("scenario.probes", "kprobe nosuch"), `no symbol "nosuch"`},
		"a_bad_start":         {change("start", "hello"), `"start" is "hello": it is no schedule`},
		"an_impossible_start": {change("start", "mmm"), "not one that the page has made"},
		"never":               {change("until.happened", "optimized"), `the machine comes to its end, and "until" never holds`},
		"at_once":             {change("until", map[string]any{"state": "int3"}), `"until" holds at the beginning already`},
		"two_true":            {change("answers.0.when.at", "strlen+0x6"), "answers 1 and 2 are both true"},
		"none_true":           {change("answers.1.when.at", "strlen+0x7"), "no answer is true at the moment of the question"},
		"reached_already":     {change("vary.goal", map[string]any{"state": "int3"}), "the variation's goal is reached before the reader does anything"},
		"not_reached":         {change("vary.goal.at", "strlen+0x10"), `"vary.way" does not lead to "vary.goal"`},
		"another_way":         {change("vary.way.calls", "strlen(\"x\")"), `"vary.way" changes calls, which "vary.change" does not name`},
		"too_long":            {change("title", strings.Repeat("x", 70_000)), "a lesson has at most 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			err := page.CheckLesson(c.file)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
		})
	}
	require.Contains(t, complaint(t, &page.Page{}, `{"do":"droplesson","name":"mine.json"}`, []byte("{}")), `mine.json: "lesson" is 0`)
	require.Contains(t, complaint(t, &page.Page{}, `{"do":"predict","of":{},"answer":0}`, nil), "this program reads version 1")
}

// CPU 0's Step is one instruction in the lesson of the races. With the worker's wait there is no crash.
func TestTheRaceThatTheWaitPrevents(t *testing.T) {
	_, list := lessons(t)
	l := list[9]
	require.Contains(t, l.Explain[0], "synchronize_rcu_tasks")
	require.Contains(t, l.Explain[0], "text_poke would not help")
	for _, careless := range []bool{true, false} {
		w := watch(t, map[string]any{"probes": l.Scenario.Probes, "calls": l.Scenario.Calls, "careless": careless, "release": l.Scenario.Release, "by": l.By})
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

// A CPU that comes between the two stores of a careless worker fails, and one that comes after them takes the jump. With
// text_poke's int3 it returns, whenever it comes.
func TestTheRaceThatTheInt3Prevents(t *testing.T) {
	_, list := lessons(t)
	l := list[9]
	come := func(careless bool, schedule string) page.CPU {
		w := watch(t, map[string]any{"probes": l.Scenario.Probes, "calls": l.Scenario.Calls, "careless": careless, "release": l.Scenario.Release, "by": l.By})
		w.Schedule = schedule
		w.ask(nil)
		for w.CPUs[1].Can {
			w.forward("b", l.By)
		}
		if schedule == "amww" {
			require.Equal(t, []string{"00", "3f"}, []string{w.Strips[0].Cells[3].Value, w.Strips[0].Cells[4].Value}, l.Answers[2].Why)
		}
		if schedule == "amw" {
			require.Regexp(t, `^CPU 1 went to 0x[0-9a-f]+, where there is no memory, and failed: page fault`, w.Did)
		}
		return w.CPUs[1]
	}
	require.Contains(t, come(true, "amw").State, "failed")
	require.Contains(t, come(true, "amww").State, "has returned")
	for n := range 12 {
		require.Contains(t, come(false, "m"+strings.Repeat("w", n)).State, "has returned", n)
	}
}

// A folder of lessons is played before it is served; the first that cannot be played is named.
func TestLessonsOfAFolder(t *testing.T) {
	var names []string
	each := func(name string, file []byte) {
		require.NoError(t, page.CheckLesson(file))
		names = append(names, name)
	}
	require.NoError(t, page.Lessons("lessons", each))
	require.Len(t, names, 11)
	require.Equal(t, "01-int3.json", names[0])

	dir := t.TempDir()
	require.ErrorContains(t, page.Lessons(dir, each), "has no lessons: they are files *.json")
	require.ErrorIs(t, page.Lessons(filepath.Join(dir, "nosuch"), each), os.ErrNotExist)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine.json"), []byte("{}"), 0o666))
	require.ErrorContains(t, page.Lessons(dir, each), "mine.json: \"lesson\" is 0")
	for n := range 200 {
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.json", n)), nil, 0o666))
	}
	require.ErrorContains(t, page.Lessons(dir, each), "has 201 lessons: the page takes 200")
}
