package explore

import (
	"bufio"
	"errors"
	"io"

	"kprobelab/internal/perfetto"
)

// WritePerfetto writes the schedule as a trace for Perfetto, with a track for each lane; with json as JSON lines.
func (s *Schedule) WritePerfetto(w io.Writer, json bool) error {
	steps := make([]perfetto.LaneStep, len(s.Lines))
	for i, l := range s.Lines {
		steps[i] = perfetto.LaneStep{Lane: l.Lane, Name: l.What, Number: l.Step, Args: []perfetto.Arg{
			{Name: "step", Value: int64(l.Step)}, {Name: "decision", Value: l.Decision},
		}}
	}
	to := bufio.NewWriter(w)
	return errors.Join(perfetto.WriteLanes(to, s.Scenario, "explore", json, steps), to.Flush())
}
