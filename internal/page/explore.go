package page

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"kprobelab/internal/bounded"
	"kprobelab/internal/explore"
	"kprobelab/profile"
)

// Explorable has what can be explored.
type Explorable struct {
	Scenarios []Scene `json:"scenarios"`
	Bugs      []Scene `json:"bugs"`
	// Bound is the usual number of switches.
	Bound int `json:"bound"`
}

// Scene is a scenario of the library, or a bug of the past with the scenario that it makes fail.
type Scene struct {
	Name     string `json:"name"`
	About    string `json:"about"`
	Text     string `json:"text,omitempty"`
	Scenario string `json:"scenario,omitempty"`
	Profile  string `json:"profile,omitempty"`
}

const usualBound = 2

func (p *Page) explorable(struct{}, []byte) (*Explorable, error) {
	e := &Explorable{Bound: usualBound}
	for _, name := range explore.Library() {
		program, err := explore.FromLibrary(name)
		if err != nil {
			return nil, err
		}
		e.Scenarios = append(e.Scenarios, Scene{Name: name, About: program.Scenario().About, Text: program.Text()})
	}
	for _, b := range explore.Switches() {
		kernel := b.Kernel
		if kernel == "" {
			kernel = profile.Default
		}
		e.Bugs = append(e.Bugs, Scene{Name: b.ID, About: b.Title, Scenario: b.Scenario, Profile: kernel})
	}
	return e, nil
}

// hunt is a search that is under way.
type hunt struct {
	program *explore.Program
	search  *explore.Search
	kernel  *profile.Config
	bugs    []string
	// orders are the runs that are drawn and can be opened; last are the lanes of the last one.
	orders []*explore.Run
	last   []string
	bad    int
	ended  string
}

type exploreQuestion struct {
	// Text is the scenario's; Profile, Bug and Bound are as in the command line.
	Text    string `json:"text"`
	Profile string `json:"profile"`
	Bug     string `json:"bug"`
	Bound   int    `json:"bound"`
}

// explore begins a search.
func (p *Page) explore(q exploreQuestion, _ []byte) (*Explored, error) {
	if len(q.Text) > explore.MaxFile {
		return nil, fmt.Errorf("a scenario has at most %d bytes", explore.MaxFile)
	}
	program, err := explore.Compile(q.Text)
	if err != nil {
		return nil, err
	}
	var bugs []string
	if q.Bug != "" {
		bugs = []string{q.Bug}
	}
	kernel, err := explore.Kernel(q.Profile, bugs)
	if err != nil {
		return nil, err
	}
	if q.Bound < -1 || q.Bound > maxBound {
		return nil, errRequest
	}
	p.hunt = &hunt{
		program: program, kernel: kernel, bugs: bugs,
		search: program.Search(explore.Options{Profile: kernel, Bound: q.Bound, MaxStates: bounded.PageExploreStates}),
	}
	return p.hunt.report(nil), nil
}

const (
	// maxBound is the most switches that the page offers.
	maxBound = 9
	// hunting is the time of a slice: the page answers other questions between two of them.
	hunting = 100 * time.Millisecond
)

// Explored says how far a search is.
type Explored struct {
	Runs   int `json:"runs"`
	States int `json:"states"`
	Bad    int `json:"bad"`
	// Orders are the new orders since the last answer, to be drawn.
	Orders []Order `json:"orders"`
	// Ended says how the search has ended, "" while it goes on.
	Ended string `json:"ended"`
}

// Order is a run in the fan. It goes as the one before up to From; Lanes go on from there.
type Order struct {
	Number  int      `json:"number"`
	From    int      `json:"from"`
	Lanes   []string `json:"lanes"`
	Verdict string   `json:"verdict"`
	Reason  string   `json:"reason"`
	Bad     bool     `json:"bad"`
}

type huntQuestion struct {
	// Runs ends the slice after so many, for tests; 0: by the clock.
	Runs int `json:"runs"`
}

var errNoHunt = errors.New("no search has begun")

// hunted goes on with the search for a slice of time.
func (p *Page) hunted(q huntQuestion, _ []byte) (*Explored, error) {
	h := p.hunt
	if h == nil {
		return nil, errNoHunt
	}
	var list []Order
	began := time.Now()
	for n := 0; h.ended == "" && (q.Runs > 0 && n < q.Runs || q.Runs == 0 && time.Since(began) < hunting); n++ {
		r, more, err := h.search.Next()
		if err != nil {
			return nil, err
		}
		if o := h.draw(r); o != nil {
			list = append(list, *o)
		}
		switch {
		case !more && h.bad > 0:
			h.ended = fmt.Sprintf("All orders within the bound were tried; %d end badly.", h.bad)
		case !more && h.search.Missing() != "":
			h.ended = "No order ends with " + h.search.Missing() + "."
		case !more:
			h.ended = "All orders within the bound were tried: none ends badly."
		case h.search.Full():
			h.ended = "There are too many states for the page: the command line goes further."
		}
	}
	return h.report(list), nil
}

// draw adds a run to the fan, if it is to be there: all bad ones are, and of the others the first.
func (h *hunt) draw(r *explore.Run) *Order {
	bad := r.Verdict != explore.OK
	if bad {
		h.bad++
	}
	if r.Pruned || len(h.orders) >= bounded.PageOrders || !bad && len(h.orders) >= bounded.PageOrders/2 {
		return nil
	}
	from := 0
	for from < len(h.last) && from < len(r.Lanes) && h.last[from] == r.Lanes[from] {
		from++
	}
	o := &Order{Number: len(h.orders), From: from, Lanes: r.Lanes[from:], Verdict: string(r.Verdict), Reason: r.Reason, Bad: bad}
	h.orders, h.last = append(h.orders, r), r.Lanes
	return o
}

func (h *hunt) report(list []Order) *Explored {
	n := h.search.Counts()
	return &Explored{Runs: n.Runs, States: n.States, Bad: h.bad, Orders: append([]Order{}, list...), Ended: h.ended}
}

// Story is an order of a scenario's steps, run again.
type Story struct {
	Scenario string   `json:"scenario"`
	About    string   `json:"about"`
	Text     string   `json:"text"`
	Profile  string   `json:"profile"`
	Bug      string   `json:"bug"`
	Verdict  string   `json:"verdict"`
	Reason   string   `json:"reason"`
	Bad      bool     `json:"bad"`
	Lanes    []string `json:"lanes"`
	Steps    []Told   `json:"steps"`
	// Link is the part of an address that has this order; File is the schedule's file.
	Link string `json:"link"`
	File string `json:"file"`
	// Says is a sentence where the file has another verdict than the run, "" where they are the same.
	Says string `json:"says,omitempty"`
}

// Told is a step of a Story.
type Told struct {
	Lane string `json:"lane"`
	What string `json:"what"`
	// Kind is "write", "sync", "stale" or "".
	Kind string `json:"kind"`
}

type orderQuestion struct {
	// Number is an order of the search's. Whole: it is not made smaller.
	Number int  `json:"number"`
	Whole  bool `json:"whole"`
	// Link, if not empty, has the order in its place; so has a file.
	Link string `json:"link"`
}

// order runs an order of the search, of an address or of a schedule's file.
func (p *Page) order(q orderQuestion, file []byte) (*Story, error) {
	switch {
	case file != nil:
		return told(string(file))
	case q.Link != "":
		text, err := explore.FromLink(q.Link)
		if err != nil {
			return nil, err
		}
		return told(text)
	case p.hunt == nil:
		return nil, errNoHunt
	case q.Number < 0 || q.Number >= len(p.hunt.orders):
		return nil, errRequest
	}
	h := p.hunt
	r := *h.orders[q.Number]
	if q.Whole {
		r.Verdict = explore.OK // is not made smaller
	}
	s, err := h.program.Shrink(h.kernel, &r)
	if err != nil {
		return nil, err
	}
	s.Bugs = h.bugs
	return story(s), nil
}

func told(text string) (*Story, error) {
	again, said, err := explore.Replay(text)
	if err != nil {
		return nil, err
	}
	s := story(again)
	if said != "" && said != again.Verdict {
		s.Says = fmt.Sprintf("The file says %s, and the run has ended with %s here.", said, again.Verdict)
	}
	return s, nil
}

func story(s *explore.Schedule) *Story {
	t := &Story{
		Scenario: s.Scenario, Text: strings.TrimRight(s.Text, "\n") + "\n", Profile: s.Profile, Bug: strings.Join(s.Bugs, ", "), Verdict: string(s.Verdict), Reason: s.Reason,
		Bad: s.Verdict != explore.OK, Link: s.Link(), File: s.String(), Steps: []Told{}, Lanes: []string{},
	}
	if program, err := explore.Compile(s.Text); err == nil {
		t.About = program.Scenario().About
	}
	for _, l := range s.Lines {
		if !slices.Contains(t.Lanes, l.Lane) {
			t.Lanes = append(t.Lanes, l.Lane)
		}
		t.Steps = append(t.Steps, Told{l.Lane, l.What, string(l.Effect())})
	}
	slices.Sort(t.Lanes)
	return t
}
