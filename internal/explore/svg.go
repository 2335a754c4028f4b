package explore

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"kprobelab/internal/perfetto"
	"kprobelab/internal/printable"
)

// The picture's measures, in pixels.
const (
	svgLane = 250
	svgRow  = 18
	svgLeft = 46
	svgTop  = 64
)

// SVG is the schedule as a picture: a lane for each CPU, interrupt and worker, a row for
// each step, in their order from the top.
func (s *Schedule) SVG() string {
	var lanes []string
	for _, l := range s.Lines {
		if !slices.Contains(lanes, l.Lane) {
			lanes = append(lanes, l.Lane)
		}
	}
	slices.Sort(lanes)
	width, height := svgLeft+svgLane*max(1, len(lanes))+10, svgTop+svgRow*len(s.Lines)+34
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="monospace" font-size="11">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(&b, `<text x="10" y="18" font-size="13">%s, profile %s: %s</text>`+"\n", svgText(s.Scenario), svgText(s.Profile), svgText(string(s.Verdict)))
	for i, lane := range lanes {
		x := svgLeft + svgLane*i
		fmt.Fprintf(&b, `<text x="%d" y="44" font-weight="bold">%s</text><line x1="%d" y1="50" x2="%d" y2="%d" stroke="#bbb"/>`+"\n",
			x, svgText(lane), x-6, x-6, height-30)
	}
	for i, l := range s.Lines {
		x, y := svgLeft+svgLane*slices.Index(lanes, l.Lane), svgTop+svgRow*i
		fmt.Fprintf(&b, `<text x="8" y="%d" fill="#888">%d</text><rect x="%d" y="%d" width="%d" height="%d" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n",
			y, l.Step, x-4, y-12, svgLane-10, svgRow-2, colour(l), x, y, svgText(cut(l.What, 36)))
	}
	fmt.Fprintf(&b, `<text x="10" y="%d" fill="#a00">%s</text>`+"\n</svg>\n", height-10, svgText(s.Reason))
	return b.String()
}

// colour tells the effects of steps apart.
func colour(l Line) string {
	switch l.Effect() {
	case Stale:
		return "#ffd9b3"
	case Write:
		return "#ffe0e0"
	case Sync:
		return "#ddeeff"
	}
	return "#f3f3f3"
}

func cut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n-1]) + "…"
}

// svgText escapes a text for a picture. A name of an image may contain anything: characters with a
// meaning in XML, and characters that XML forbids.
func svgText(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(printable.Name(s))) // to memory
	return b.String()
}

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
