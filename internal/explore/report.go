package explore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"kprobelab/internal/bounded"
	"kprobelab/profile"
)

// ErrNone is a name that is neither a scenario of the library's nor a file.
var ErrNone = errors.New("it is no scenario of the library, and no file")

// Open is a scenario of the library by its name, or one in a file; without a name it is the scenario of the only bug. The
// error is ErrNone, or of the file.
func Open(name string, bugs []string) (*Program, error) {
	if name == "" && len(bugs) == 1 {
		b, err := Find(bugs[0])
		if err != nil {
			return nil, err
		}
		name = b.Scenario
	}
	if slices.Contains(Library(), name) {
		return FromLibrary(name)
	}
	text, err := bounded.ReadFile(name, MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", name, ErrNone)
	}
	if err != nil {
		return nil, err
	}
	p, err := Compile(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// Report is the result of an exploration, in the form for printing.
type Report struct {
	Scenario string   `json:"scenario"`
	Profile  string   `json:"profile"`
	Bugs     []string `json:"bugs,omitempty"`
	Bound    int      `json:"bound"`
	Verdict  Verdict  `json:"verdict"`
	Reason   string   `json:"reason,omitempty"`
	Counts   Counts   `json:"counts"`
	Schedule []string `json:"schedule,omitempty"`
	// Page is a link to the schedule on the page, "" if none was asked for.
	Page string `json:"page,omitempty"`
	// Walks is the number of random runs, 0 if all schedules were tried; Seed is their seed.
	Walks int    `json:"-"`
	Seed  uint64 `json:"-"`

	failing *Schedule
}

// Report is the report of an exploration.
func (p *Program) Report(kernel *profile.Config, bugs []string, bound int, res *Result) *Report {
	r := &Report{
		Scenario: p.Scenario().Name, Profile: kernel.Name, Bugs: bugs, Bound: bound, Verdict: res.Verdict, Reason: res.Reason, Counts: res.Counts, failing: res.Failing,
	}
	if res.Failing != nil {
		for _, l := range res.Failing.Lines {
			r.Schedule = append(r.Schedule, l.Decision)
		}
	}
	return r
}

// WriteJSON writes one JSON object.
func (r *Report) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(r) }

// WriteText writes the report for people.
func (r *Report) WriteText(w io.Writer) error {
	within := fmt.Sprintf("up to %d switches", r.Bound)
	switch {
	case r.Walks > 0:
		within = fmt.Sprintf("%d walks from seed %d", r.Walks, r.Seed)
	case r.Bound < 0:
		within = "any number of switches"
	}
	n := r.Counts
	_, err := fmt.Fprintf(w, "%s: profile %s, %s\n%d runs, %d places with a choice, %d states, %d ends\n",
		r.Scenario, r.Profile, within, n.Runs, n.Choices, n.States, n.Ends)
	switch {
	case err != nil:
		return err
	case r.Verdict == OK:
		_, err = fmt.Fprintln(w, "ok")
	case r.failing == nil:
		_, err = fmt.Fprintf(w, "%s: %s\n", r.Verdict, r.Reason)
	default:
		_, err = fmt.Fprintf(w, "%s: %s\n\n%s", r.Verdict, r.Reason, r.failing)
	}
	if err == nil && r.Page != "" {
		_, err = fmt.Fprintf(w, "\n%s\n", r.Page)
	}
	return err
}
