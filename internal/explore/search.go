package explore

import (
	"context"
	"fmt"
	"slices"

	"kprobelab/internal/bounded"
	"kprobelab/profile"
)

// Options say how a scenario is explored.
type Options struct {
	Profile *profile.Config
	// Bound is the most times that a schedule may leave a CPU that could go on; negative: no limit.
	Bound int
	// MaxRuns ends the exploration; 0 means no limit.
	MaxRuns int
	// MaxStates ends it when it remembers more states and places; 0, and more than MaxStates, means MaxStates.
	MaxStates int
	// Progress is called from time to time.
	Progress func(Counts)
	// Reduction says which schedules are skipped.
	Reduction Reduction
}

// Reduction says which schedules are skipped, because a schedule like them was tried.
type Reduction int

// The reductions.
const (
	// ByState skips schedules that come to a state which was reached before.
	ByState Reduction = iota
	// ByOrder skips schedules that have the same steps in another order, if steps that
	// depend on each other have the same order.
	ByOrder
	// None skips nothing: every order is tried.
	None
)

// Counts says how much an exploration has covered.
type Counts struct {
	// Runs counts the runs, Steps their steps that were new, Pruned the runs that came
	// to a place that another run had reached.
	Runs   int `json:"runs"`
	Steps  int `json:"steps"`
	Pruned int `json:"pruned"`
	// Choices counts the places with more than one way to go on.
	Choices int `json:"choices"`
	// States counts the different states of the machine that were reached.
	States int `json:"states"`
	// Ends counts the different ends.
	Ends int `json:"ends"`
	// Preemptions is the greatest number of preemptions in a run.
	Preemptions int `json:"preemptions"`
}

// Result is the outcome of an exploration.
type Result struct {
	Verdict Verdict
	Reason  string
	// Failing is a schedule that ends with the verdict, nil if none fails.
	Failing *Schedule
	Counts  Counts
	// Missing are the conditions that should exist and do not.
	Missing []string
}

// Program is a scenario that is ready to run.
type Program struct {
	text string
	p    *program
}

// Compile reads a scenario and lays its text out.
func Compile(text string) (*Program, error) {
	s, err := Parse(text)
	if err != nil {
		return nil, err
	}
	p, err := assembleAll(s)
	if err != nil {
		return nil, err
	}
	return &Program{text, p}, nil
}

// Scenario returns the parsed scenario.
func (p *Program) Scenario() *Scenario { return p.p.s }

// Text returns the scenario's text.
func (p *Program) Text() string { return p.text }

// node is a place of the run under way with more than one way to go on.
type node struct {
	choices []int // indices of the run's choices that are still to be tried
	taken   int
	// used counts the run's preemptions before it.
	used int
}

// spot is the key of the cache of visited places: hash is the state or, up to the order of
// independent steps, the way to it; last is the task that ran last, -1 if that does not matter.
type spot struct {
	hash uint64
	last int
}

// progressRuns is the number of runs between two calls of Progress.
const progressRuns = 50

// MaxStates is the largest number of states and places that an exploration remembers; with
// more it ends.
const MaxStates = bounded.ExploreStates

type search struct {
	p       *program
	o       *Options
	stack   []node
	visited map[spot]int
	states  map[uint64]struct{}
	ends    map[uint64]struct{}
	held    []bool
	counts  Counts
	buf     []choice
	// lanes are the last run's.
	lanes []string
}

// Search tries the schedules of a scenario within the bound, a run at a time.
type Search struct{ s *search }

// Run is a run of a Search.
type Run struct {
	Decisions []string
	// Lanes has the lane that each decision lets go on.
	Lanes []string
	// Verdict is OK for a good end. Pruned: the run was given up where another run had been.
	Verdict Verdict
	Reason  string
	Pruned  bool
}

// Search returns a search that has made no run yet.
func (p *Program) Search(o Options) *Search {
	return &Search{&search{
		p: p.p, o: &o, visited: map[spot]int{}, states: map[uint64]struct{}{}, ends: map[uint64]struct{}{},
		held: make([]bool, len(p.p.s.Exists)),
	}}
}

// Next makes a run. more is false if there is no other one after it.
func (s *Search) Next() (run *Run, more bool, err error) {
	pruned := s.s.counts.Pruned
	r, picks, err := s.s.once()
	if err != nil {
		return nil, false, err
	}
	run = &Run{Decisions: picks, Lanes: s.s.lanes, Verdict: r.verdict, Reason: r.reason, Pruned: s.s.counts.Pruned > pruned}
	if run.Verdict == "" {
		run.Verdict = OK
	}
	r.close()
	return run, s.s.next(), nil
}

// Counts says how much has been covered.
func (s *Search) Counts() Counts { return s.s.counted() }

// Full: the search remembers as many states as it may, and goes no further.
func (s *Search) Full() bool { return s.s.full() }

// Missing returns the first condition that should exist and that no run has reached so far, "" for none.
func (s *Search) Missing() string {
	for i, ok := range s.s.held {
		if !ok {
			return s.s.p.s.Exists[i].String()
		}
	}
	return ""
}

// full: there are too many states.
func (s *search) full() bool {
	most := MaxStates
	if s.o.MaxStates > 0 {
		most = min(most, s.o.MaxStates)
	}
	return len(s.visited)+len(s.states) > most
}

// Shrink returns a run as a schedule. A bad one is made smaller first.
func (p *Program) Shrink(c *profile.Config, r *Run) (*Schedule, error) {
	if r.Verdict != OK {
		return p.shrink(c, r.Decisions, r.Verdict)
	}
	s, _, err := p.follow(c, r.Decisions, false)
	return s, err
}

// Explore tries every schedule within the bound.
func (p *Program) Explore(ctx context.Context, o Options) (*Result, error) {
	search := p.Search(o)
	s := search.s
	for {
		if ctx.Err() != nil || o.MaxRuns > 0 && s.counts.Runs >= o.MaxRuns {
			return s.result(Unfinished, fmt.Sprintf("ended after %d runs, before all were tried", s.counts.Runs)), nil
		}
		if s.full() {
			return s.result(Unfinished, fmt.Sprintf("ended after %d runs: there are too many states; try fewer switches, or walks", s.counts.Runs)), nil
		}
		run, more, err := search.Next()
		if err != nil {
			return nil, err
		}
		if run.Verdict != OK {
			res := s.result(run.Verdict, run.Reason)
			res.Failing, err = p.Shrink(o.Profile, run)
			if err == nil && res.Failing != nil {
				res.Reason = res.Failing.Reason
			}
			return res, err
		}
		if s.o.Progress != nil && s.counts.Runs%progressRuns == 0 {
			s.o.Progress(s.counted())
		}
		if !more {
			break
		}
	}
	if missing := search.Missing(); missing != "" {
		res := s.result(Condition, "no run ends with "+missing)
		res.Missing = append(res.Missing, missing)
		return res, nil
	}
	return s.result(OK, ""), nil
}

func (s *search) counted() Counts {
	s.counts.States, s.counts.Ends = len(s.states), len(s.ends)
	return s.counts
}

func (s *search) result(v Verdict, reason string) *Result {
	return &Result{Verdict: v, Reason: reason, Counts: s.counted()}
}

// once makes a run: the choices on the stack, then the first of each new place.
func (s *search) once() (*run, []string, error) {
	r, err := newRun(s.p, s.o.Profile)
	if err != nil {
		return nil, nil, err
	}
	s.counts.Runs++
	depth, used := 0, 0
	var picks []string
	s.lanes = nil
	for {
		s.buf = r.choices(s.buf)
		if r.over(len(s.buf)) {
			break
		}
		n := 0
		fresh := depth == len(s.stack)
		if len(s.buf) > 1 {
			if fresh {
				if !s.visit(r, used) {
					s.counts.Pruned++
					return r, picks, nil
				}
				s.stack = append(s.stack, node{choices: s.affordable(used), used: used})
				s.counts.Choices++
			}
			nd := &s.stack[depth]
			n = nd.choices[nd.taken]
			depth++
		}
		c := s.buf[n]
		if c.preempts {
			used++
		}
		picks, s.lanes = append(picks, c.decision()), append(s.lanes, c.lane())
		r.take(c)
		if depth == len(s.stack) {
			s.counts.Steps++
			s.states[r.state] = struct{}{}
		}
	}
	s.counts.Preemptions = max(s.counts.Preemptions, used)
	if r.verdict == "" {
		s.ends[r.state] = struct{}{}
		for i, ok := range r.held {
			s.held[i] = s.held[i] || ok
		}
	}
	return r, picks, nil
}

// visit reports whether the place was not reached before with as many preemptions
// left.
func (s *search) visit(r *run, used int) bool {
	at := spot{r.state, -1}
	switch s.o.Reduction {
	case None:
		return true
	case ByOrder:
		at.hash = r.trail()
	case ByState:
	}
	if r.last != nil {
		at.last = r.last.n
	}
	if s.o.Bound < 0 {
		used, at.last = 0, -1
	}
	if was, ok := s.visited[at]; ok && was <= used {
		return false
	}
	s.visited[at] = used
	return true
}

// affordable are the choices that the bound leaves.
func (s *search) affordable(used int) (list []int) {
	for i, c := range s.buf {
		if s.o.Bound < 0 || !c.preempts || used < s.o.Bound {
			list = append(list, i)
		}
	}
	return list
}

// next moves the stack to the next schedule; false if there is none.
func (s *search) next() bool {
	for len(s.stack) > 0 {
		top := &s.stack[len(s.stack)-1]
		if top.taken++; top.taken < len(top.choices) {
			return true
		}
		s.stack = s.stack[:len(s.stack)-1]
	}
	return false
}

// Replay runs a schedule, and returns it with its steps and its verdict. It fails if
// the schedule does not fit the scenario.
func (p *Program) Replay(c *profile.Config, decisions []string) (*Schedule, error) {
	s, used, err := p.follow(c, decisions, true)
	if err == nil && used < len(decisions) {
		err = fmt.Errorf("the run ends after %d of the schedule's %d steps", used, len(decisions))
	}
	return s, err
}

// Again runs a schedule's own scenario on its own profile and bugs, as Replay does.
func (s *Schedule) Again() (*Schedule, error) {
	c, err := Kernel(s.Profile, s.Bugs)
	if err != nil {
		return nil, err
	}
	p, err := Compile(s.Text)
	if err != nil {
		return nil, err
	}
	again, err := p.Replay(c, s.Decisions())
	if err == nil {
		again.Bugs = slices.Clone(s.Bugs)
	}
	return again, err
}

// follow runs decisions as far as they fit; strict: all have to. Where they end
// or do not fit, the run goes on as it did.
func (p *Program) follow(c *profile.Config, decisions []string, strict bool) (*Schedule, int, error) {
	r, err := newRun(p.p, c)
	if err != nil {
		return nil, 0, err
	}
	defer r.close()
	s := &Schedule{Scenario: p.p.s.Name, Profile: c.Name, Text: p.text}
	r.trace = func(l Line) { s.Lines = append(s.Lines, l) }
	var list []choice
	next := 0
	for {
		list = r.choices(list)
		if r.over(len(list)) {
			break
		}
		pick := 0
		if next < len(decisions) {
			i := slices.IndexFunc(list, func(c choice) bool { return c.decision() == decisions[next] })
			switch {
			case i >= 0:
				pick = i
			case strict:
				return nil, 0, fmt.Errorf("step %d: %q cannot be: the schedule is for another scenario, kernel or version", next+1, decisions[next])
			}
			next++
		}
		r.take(list[pick])
	}
	s.Verdict, s.Reason, s.End = r.verdict, r.reason, r.ended
	if s.Verdict == "" {
		s.Verdict = OK
	}
	return s, next, nil
}

// shrink makes a failing schedule smaller: it leaves switches and stale fetches
// out as long as the run ends with the same verdict.
func (p *Program) shrink(c *profile.Config, picks []string, v Verdict) (*Schedule, error) {
	best, _, err := p.follow(c, picks, true)
	if err != nil || best.Verdict != v {
		return best, err
	}
	for tries, again := 0, true; again && tries < 400; {
		again = false
		list := best.Decisions()
		for i := 1; i < len(list) && tries < 400; i++ {
			if list[i] == list[i-1] {
				continue
			}
			tries++
			if got := p.without(c, list, i, v); got != nil && got.switches() < best.switches() {
				best, again = got, true
				break
			}
		}
	}
	return best, nil
}

// without returns the run in which the task that ran before step i continues for as
// long as the schedule had another task; nil if that run ends with another verdict.
func (p *Program) without(c *profile.Config, list []string, i int, v Verdict) *Schedule {
	j := i
	for j < len(list) && list[j] == list[i] {
		j++
	}
	cut := slices.Concat(list[:i], list[j:])
	s, _, err := p.follow(c, cut, false)
	if err != nil || s.Verdict != v {
		return nil
	}
	return s
}

// Decisions returns the decision of each step.
func (s *Schedule) Decisions() []string {
	var list []string
	for _, l := range s.Lines {
		list = append(list, l.Decision)
	}
	return list
}

// switches counts the changes from one lane to another, and an eighth of the steps.
func (s *Schedule) switches() int {
	n := len(s.Lines) / 8 // a shorter run is better too
	for i := 1; i < len(s.Lines); i++ {
		if s.Lines[i].Lane != s.Lines[i-1].Lane {
			n++
		}
	}
	return n
}
