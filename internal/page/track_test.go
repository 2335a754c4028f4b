package page_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/page"
)

// The timeline of a run is the same whether the run was taken step by step or came by its address.
func TestTheTimelineOfAnAddress(t *testing.T) {
	scenario := one("kprobe opt_yes", "opt_yes(1)\nopt_yes(2); opt_yes(3)")
	w := watch(t, scenario)
	var marks []page.Mark
	var stale []page.Stale
	for range 60 {
		known := w.Steps
		w.ask(map[string]any{"move": "forward", "by": "protocol", "lead": "ma8w13", "known": known})
		marks, stale = append(marks, w.Marks...), append(stale, w.Stale...)
		if !w.Moved {
			break
		}
	}
	require.NotEmpty(t, stale)
	other := &watched{t: t, p: &page.Page{}, scenario: scenario, View: page.View{Schedule: w.Schedule, Sub: -1}}
	other.ask(nil)
	all := map[page.Mark]int{}
	for _, m := range marks {
		all[m]++ // the events of the last step come with each of its events
	}
	require.Len(t, all, len(other.Marks))
	for _, m := range other.Marks {
		require.Positive(t, all[m], m)
	}
	kinds := map[string]bool{}
	for _, m := range other.Marks {
		kinds[m.Kind] = true
		require.NotEmpty(t, m.Text)
	}
	for _, kind := range []string{"register", "queue", "trap", "handler", "detour", "jump", "write", "sync", "wait", "return"} {
		require.True(t, kinds[kind], kind)
	}
	var returns []string
	for _, m := range other.Marks {
		if m.Sub < 0 {
			returns = append(returns, m.Text)
		}
	}
	require.Equal(t, []string{"opt_yes returned 10", "opt_yes returned 11", "opt_yes returned 12"}, returns)
}

// From a write until its synchronization, the CPUs are stale.
func TestStaleFromAWriteToItsSynchronization(t *testing.T) {
	w := watch(t, one("kprobe opt_yes", "opt_yes(1)\nopt_yes(2)"))
	w.forward("m", "instruction")
	for w.Worker {
		w.forward("w", "instruction")
	}
	w.ask(nil)
	var said []string
	for _, s := range w.Stale {
		text := ""
		for _, m := range w.Marks {
			if m.Step == s.Step {
				text = m.Kind
			}
		}
		said = append(said, text+" "+s.CPUs)
	}
	require.Equal(t, "write ab, sync , write ab, sync ", strings.Join(said, ", "))
}

// A fault is on the timeline.
func TestAFaultIsMarked(t *testing.T) {
	w := watch(t, map[string]any{"probes": "kprobe opt_yes", "calls": "opt_yes(1)", "careless": true})
	w.Schedule = "amwa"
	w.ask(nil)
	last := w.Marks[len(w.Marks)-1]
	require.Equal(t, []any{3, -1, "fault"}, []any{last.Step, last.Sub, last.Kind})
}

// A detour buffer's rows are five groups, of which the copies are the original instructions.
func TestADetourBufferHasGroups(t *testing.T) {
	w := watch(t, one("kprobe opt_yes", "opt_yes(1)"))
	require.True(t, w.code("function").Rows[0].Region, "before the registration")
	w.forward("m", "instruction")
	d := w.code("detour")
	var names []string
	n := 0
	for _, g := range d.Groups {
		names = append(names, g.Name)
		if n += g.N; g.Name == "copies" {
			require.Equal(t, 2, g.N)
		}
	}
	require.Equal(t, []string{"save registers", "call the handlers", "restore registers", "copies", "jump back"}, names)
	require.Len(t, d.Rows, n)
}
