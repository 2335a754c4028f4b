package main

import (
	"bufio"
	"errors"
	"strings"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/explore"
	"kprobelab/internal/outfile"
	"kprobelab/internal/perfetto"
)

// pictured writes what --out, --svg and --perfetto ask for.
func pictured(c *cli.Command, s *explore.Schedule) error {
	if s == nil {
		return nil
	}
	for flag, text := range map[string]func() string{"out": s.String, "svg": s.SVG} {
		if file := c.String(flag); file != "" {
			if err := outfile.Write(file, []byte(text())); err != nil {
				return fail(exitImage, err)
			}
		}
	}
	if file := c.String("perfetto"); file != "" {
		if err := drawnLanes(file, s); err != nil {
			return fail(exitImage, err)
		}
	}
	return nil
}

// drawnLanes writes the schedule as a trace for Perfetto, with a track for each lane; as
// JSON lines to a file of that kind.
func drawnLanes(name string, s *explore.Schedule) error {
	f, err := outfile.Create(name)
	if err != nil {
		return err
	}
	steps := make([]perfetto.LaneStep, len(s.Lines))
	for i, l := range s.Lines {
		steps[i] = perfetto.LaneStep{Lane: l.Lane, Name: l.What, Number: l.Step, Args: []perfetto.Arg{
			{Name: "step", Value: int64(l.Step)}, {Name: "decision", Value: l.Decision},
		}}
	}
	to := bufio.NewWriter(f)
	return f.Done(errors.Join(perfetto.WriteLanes(to, s.Scenario, "explore", strings.HasSuffix(name, ".jsonl"), steps), to.Flush()))
}
