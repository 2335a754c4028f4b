package perfetto

import (
	"io"
	"slices"
)

// LaneStep is a step of a schedule, in which steps have an order and no times. Lane names the task or CPU that does it,
// Number is its place in the order.
type LaneStep struct {
	Lane, Name string
	Number     int
	Args       []Arg
}

// stepTime is the drawn length of a step, in nanoseconds.
const stepTime = 1000

// WriteLanes writes steps with a track for each lane, name being what runs; with json as JSON lines.
func WriteLanes(to io.Writer, name, category string, json bool, steps []LaneStep) error {
	write := NewWriter(to, name).Write
	if json {
		write = func(e *Event) error { return WriteJSON(to, e) }
	}
	var lanes []string
	for _, s := range steps {
		n := slices.Index(lanes, s.Lane)
		if n < 0 {
			n = len(lanes)
			lanes = append(lanes, s.Lane)
		}
		e := Event{Time: uint64(s.Number) * stepTime, Kind: Begin, PID: n + 1, Comm: s.Lane, Category: category, Name: s.Name, Args: s.Args}
		if err := write(&e); err != nil {
			return err
		}
		e.Time, e.Kind, e.Args = e.Time+stepTime-1, End, nil
		if err := write(&e); err != nil {
			return err
		}
	}
	return nil
}
