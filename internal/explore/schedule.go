package explore

import (
	"fmt"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
)

// Line is a step of a run, for people and for a replay.
type Line struct {
	Step int
	// Lane names the CPU, the interrupt of a CPU, or the worker that takes it.
	Lane string
	What string
	// Decision is the step in a schedule's words.
	Decision string
	// Kind is the kind of step, Place the place in the text or the slots, Bytes the
	// bytes that are written or seen.
	Kind, Place string
	Bytes       []byte
}

// String is the line as a schedule file has it.
func (l Line) String() string {
	return fmt.Sprintf("%-28s # %d %s: %s", l.Decision, l.Step, l.Lane, l.What)
}

// Effect is a step's effect on text.
type Effect string

// The effects. Other steps have none, "".
const (
	// Write: text changes. Sync: a CPU sees all changes. Stale: a CPU fetches older bytes.
	Write Effect = "write"
	Sync  Effect = "sync"
	Stale Effect = "stale"
)

// Effect returns the step's effect on text.
func (l Line) Effect() Effect {
	word, _, _ := strings.Cut(l.What, " ")
	switch {
	case strings.Contains(l.What, ", stale:"):
		return Stale
	case word == "store" || word == "announce":
		return Write
	case word == "sync" || word == "acknowledges:":
		return Sync
	}
	return ""
}

// decision names a choice: the task that continues, and the bytes that it sees if they are a choice.
func (c choice) decision() string {
	switch {
	case c.task == nil:
		return fmt.Sprintf("ack cpu%d", c.ack)
	case c.task.wait.fetch:
		return fmt.Sprintf("%s sees %x", c.task.name, c.seen)
	}
	return c.task.name
}

// lane names the task that continues, or the CPU that acknowledges.
func (c choice) lane() string {
	if c.task == nil {
		return fmt.Sprintf("cpu%d", c.ack)
	}
	return c.task.name
}

func (r *run) describe(t *task, c choice) {
	r.line.Lane, r.line.Decision = t.name, c.decision()
	what := t.wait.kind
	r.line.Kind, r.line.Bytes = what, t.wait.bytes
	if t.wait.fetch {
		r.line.Bytes = c.seen
	}
	if t.wait.at != 0 {
		r.line.Place = r.w.where(t.wait.at)
		what += " " + r.line.Place
	}
	if t.wait.note != "" {
		what += ": " + t.wait.note
	}
	switch {
	case t.wait.fetch && c.option > 0:
		what += fmt.Sprintf(", stale: % x", c.seen)
	case t.wait.fetch:
		what += fmt.Sprintf(": % x", c.seen)
	case t.wait.kind == "lock" || t.wait.kind == "call":
		if t.action < len(t.actions) {
			what = t.wait.kind + ", to " + t.actions[t.action].String()
		}
	}
	r.line.What = what
}

// Schedule is a run as a file: the scenario, the kernel, and the choice at each step.
type Schedule struct {
	Scenario, Profile string
	Bugs              []string
	Verdict           Verdict
	Reason            string
	Lines             []Line
	// Text is the scenario's own text.
	Text string
	// End is the state at the end of the run.
	End End
}

// End is the state at the end of a run, before the probes are taken out.
type End struct {
	// Text is the functions' bytes.
	Text []byte
	// Hits and Missed are the probes' counts.
	Hits, Missed map[string]int
}

func (r *run) end() End {
	e := End{slices.Clone(r.w.mem0[:r.w.end]), map[string]int{}, map[string]int{}}
	for _, p := range r.probes {
		e.Hits[p.Name], e.Missed[p.Name] = p.hits, p.missed()
	}
	return e
}

// String is the schedule as a file.
func (s *Schedule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "schedule %s\nprofile %s\n", s.Scenario, s.Profile)
	for _, bug := range s.Bugs {
		fmt.Fprintf(&b, "bug %s\n", bug)
	}
	fmt.Fprintf(&b, "verdict %s\n# %s\n\n", s.Verdict, s.Reason)
	for _, l := range s.Lines {
		b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
	}
	b.WriteString("\nscenario\n")
	for line := range strings.SplitSeq(strings.TrimRight(s.Text, "\n"), "\n") {
		b.WriteString(strings.TrimRight("\t"+line, "\t ") + "\n")
	}
	return b.String()
}

// MaxSchedule is the greatest length of a schedule file in bytes.
const MaxSchedule = bounded.ScheduleFile

// ParseSchedule reads a schedule file: of its steps the decisions alone count.
func ParseSchedule(text string) (*Schedule, error) {
	if len(text) > MaxSchedule {
		return nil, fmt.Errorf("a schedule is at most %d bytes long", MaxSchedule)
	}
	s := &Schedule{}
	head, body, ok := strings.Cut(text, "\nscenario\n")
	if !ok || !strings.HasPrefix(head, "schedule ") {
		return nil, fmt.Errorf("no schedule: it begins with \"schedule NAME\" and ends with the scenario")
	}
	for line := range strings.SplitSeq(body, "\n") {
		s.Text += strings.TrimPrefix(line, "\t") + "\n"
	}
	for line := range strings.SplitSeq(head, "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "":
		case "schedule":
			s.Scenario = rest
		case "profile":
			s.Profile = rest
		case "bug":
			s.Bugs = append(s.Bugs, rest)
		case "verdict":
			s.Verdict = Verdict(rest)
		default:
			s.Lines = append(s.Lines, Line{Step: len(s.Lines) + 1, Decision: line})
		}
	}
	return s, nil
}
