package run

import (
	"fmt"

	"kprobelab/watch"
)

// feed gives events to a sink.
type feed struct{ to Sink }

// put gives the sink an event. An error of the sink is the sink's to keep.
func (f feed) put(e Event) { _ = f.to.Put(e) }

func (f feed) log(from, line string) { f.put(Logged{from, line}) }

// watchAll sets the watchpoints in order, and stops at the first that is refused.
func (f feed) watchAll(places []watch.Place, set func(watch.Place) (*Probe, error)) error {
	for _, place := range places {
		p, err := set(place)
		if err != nil {
			f.put(RefusedProbe{Probe: Probe{Kind: "watchpoint", Text: place.String()}, Err: err})
			return refused(fmt.Errorf("--watch %s: %w", place, err))
		}
		f.put(Planted{*p})
	}
	return nil
}

// traced gives the content of a file trace, to a function where there is one.
func (f feed) traced(text string, to func(string) error) error {
	if to != nil {
		return to(text)
	}
	f.put(Traced{text})
	return nil
}
