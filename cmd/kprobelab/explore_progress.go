package main

import (
	"fmt"
	"time"

	"kprobelab/internal/explore"
)

// exploring says on standard error how far an exploration is: on a terminal as a bar, else a
// line now and then, the first when it has taken two seconds.
type exploring struct {
	t *term
	// what begins a line: the command, with --all the scenario, too.
	what string
	// runs is the maximum number of runs.
	runs  int
	since time.Time
	next  time.Duration
	now   func() time.Time
	// bounded is whether it was said when the exploration ends.
	bounded bool
}

// firstSaid is the time after which the first line is written. Each next line comes after twice the time.
const firstSaid = 2 * time.Second

func newExploring(t *term, runs int) *exploring {
	return &exploring{t: t, what: "explore", runs: runs, since: time.Now(), next: firstSaid, now: time.Now}
}

// of begins the exploration of one scenario of several.
func (e *exploring) of(scenario string) {
	e.what, e.since, e.next = "explore "+scenario, e.now(), firstSaid
}

// progress is explore.Options.Progress.
func (e *exploring) progress(n explore.Counts) {
	took := e.now().Sub(e.since)
	if took >= e.next && !e.bounded {
		e.bounded = true
		e.said("explore: it is not known how many runs there are; it ends after %d runs or %d states at most (--max-runs, --bound), and Ctrl-C ends it with what was found", e.runs, explore.MaxStates)
	}
	if e.t.ErrIsTerminal {
		e.next = max(e.next, took+1)
		e.t.Count(e.what, "runs", int64(n.Runs), 0)
		return
	}
	if took >= e.next {
		e.said("%s: %d runs, %d states after %s", e.what, n.Runs, n.States, took.Round(time.Second))
		e.next = 2 * took
	}
}

func (e *exploring) said(format string, a ...any) {
	e.t.ProgressDone()
	fmt.Fprintf(e.t.Err, format+"\n", a...)
}
