package explore

import (
	"fmt"
	"time"
)

// Progress says how far an exploration is: as a bar, or as a line now and then, the first when it has taken two seconds.
type Progress struct {
	// Bar shows how many runs there were, nil to write lines. Say writes a line.
	Bar func(what string, runs int)
	Say func(line string)
	// MaxRuns is Options.MaxRuns.
	MaxRuns int

	// what begins a line: "explore", and the scenario's name if there are several.
	what  string
	since time.Time
	next  time.Duration
	now   func() time.Time
	// bounded: it has been said when the exploration ends.
	bounded bool
}

// firstSaid is the time after which the first line is written. Each next line comes after twice the time.
const firstSaid = 2 * time.Second

// Begin begins the exploration of one scenario; its name is "" if there is no other.
func (e *Progress) Begin(scenario string) {
	if e.now == nil {
		e.now = time.Now
	}
	if e.what = "explore"; scenario != "" {
		e.what += " " + scenario
	}
	e.since, e.next = e.now(), firstSaid
}

// Show is Options.Progress.
func (e *Progress) Show(n Counts) {
	took := e.now().Sub(e.since)
	if took >= e.next && !e.bounded {
		e.bounded = true
		e.Say(fmt.Sprintf("explore: it is not known how many runs there are; it ends after %d runs or %d states at most (--max-runs, --bound), and Ctrl-C ends it with what was found", e.MaxRuns, MaxStates))
	}
	if e.Bar != nil {
		e.next = max(e.next, took+1)
		e.Bar(e.what, n.Runs)
		return
	}
	if took >= e.next {
		e.Say(fmt.Sprintf("%s: %d runs, %d states after %s", e.what, n.Runs, n.States, took.Round(time.Second)))
		e.next = 2 * took
	}
}
