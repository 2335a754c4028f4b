package main

import (
	"bufio"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/explore"
	"kprobelab/internal/perfetto"
)

// pictured writes what --out, --svg and --perfetto ask for.
func pictured(c *cli.Command, s *explore.Schedule) error {
	if s == nil {
		return nil
	}
	for flag, text := range map[string]func() string{"out": s.String, "svg": s.SVG} {
		if file := c.String(flag); file != "" {
			if err := writeOutput(file, []byte(text())); err != nil {
				return &failure{exitImage, err}
			}
		}
	}
	if file := c.String("perfetto"); file != "" {
		if err := drawnLanes(file, s); err != nil {
			return &failure{exitImage, err}
		}
	}
	return nil
}

// stepTime is how long a step is in a trace, in nanoseconds: a schedule has an
// order, and no times.
const stepTime = 1000

// drawnLanes writes the schedule as a trace for Perfetto, with a track for each lane; as
// JSON lines to a file of that kind.
func drawnLanes(name string, s *explore.Schedule) error {
	f, err := createOutput(name)
	if err != nil {
		return err
	}
	to := bufio.NewWriter(f)
	w := perfetto.NewWriter(to, s.Scenario)
	write := w.Write
	if strings.HasSuffix(name, ".jsonl") {
		write = func(e *perfetto.Event) error { return perfetto.WriteJSON(to, e) }
	}
	var lanes []string
	for _, l := range s.Lines {
		n := slices.Index(lanes, l.Lane)
		if n < 0 {
			n = len(lanes)
			lanes = append(lanes, l.Lane)
		}
		e := perfetto.Event{
			Time: uint64(l.Step) * stepTime, Kind: perfetto.Begin, PID: n + 1, Comm: l.Lane, Category: "explore", Name: l.What,
			Args: []perfetto.Arg{{Name: "step", Value: int64(l.Step)}, {Name: "decision", Value: l.Decision}},
		}
		if err == nil {
			err = write(&e)
		}
		e.Time, e.Kind, e.Args = e.Time+stepTime-1, perfetto.End, nil
		if err == nil {
			err = write(&e)
		}
	}
	if flushed := to.Flush(); err == nil {
		err = flushed
	}
	return f.done(err)
}
