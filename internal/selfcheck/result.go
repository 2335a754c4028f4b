package selfcheck

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"kprobelab/decoder"
	"kprobelab/x86"
)

// Result is the outcome of a comparison.
type Result struct {
	// Points is the number of points.
	Points    int
	Questions []Answers
	// Booted: the image is a kernel that has booted, which has no Left.
	Booted bool
}

// Answers are the answers to one question.
type Answers struct {
	// Function is the image's function, About the question that it decides.
	Function string `json:"function"`
	About    string `json:"about"`
	// Asked counts the points at which both answered, Differ those of them at which the
	// answers differ.
	Asked  int `json:"asked"`
	Differ int `json:"differ"`
	// Silent counts the questions that the function did not answer; Why says what
	// happened the first time. GivenUp: it got no further questions.
	Silent  int    `json:"silent"`
	Why     string `json:"why,omitempty"`
	GivenUp bool   `json:"given_up,omitempty"`
	// NotThere: the image has no such function to call.
	NotThere bool `json:"not_there,omitempty"`
	// Unanswered: there is no answer of the function at any point.
	Unanswered bool `json:"unanswered,omitempty"`
	// Examples are the first differences of each kind, Kinds the number of all by
	// kind.
	Examples []Difference `json:"examples,omitempty"`
	Kinds    map[Kind]int `json:"-"`
}

// Kind tells differences apart: by the rule that the rules applied, and by both answers.
type Kind struct{ Rule, Rules, Own string }

// Difference is one point at which the two differ.
type Difference struct {
	Place string   `json:"place"`
	Addr  x86.Addr `json:"-"`
	// Rules is the rules' answer, by Rule if it has a name; Own is the image's answer.
	Rules string `json:"rules"`
	Rule  string `json:"rule,omitempty"`
	Own   string `json:"own"`
	// Code has the bytes at the point.
	Code []byte `json:"-"`
}

func (d *Difference) kind() Kind { return Kind{d.Rule, d.Rules, d.Own} }

// maxExamples is the number of differences of a kind that are kept.
const maxExamples = 3

func (t *Answers) differ(d Difference) {
	t.Differ++
	t.keep(d, 1)
}

// keep counts n differences of the kind, of which this is one.
func (t *Answers) keep(d Difference, n int) {
	kept := 0
	for i := range t.Examples {
		if t.Examples[i].kind() == d.kind() {
			kept++
		}
	}
	if kept < maxExamples {
		t.Examples = append(t.Examples, d)
	}
	t.Kinds[d.kind()] += n
}

// add joins what two machines found.
func (r *Result) add(o *Result) {
	r.Points += o.Points
	for i := range r.Questions {
		t, u := &r.Questions[i], &o.Questions[i]
		t.Asked, t.Differ, t.Silent = t.Asked+u.Asked, t.Differ+u.Differ, t.Silent+u.Silent
		t.Why, t.GivenUp, t.NotThere = cmp.Or(t.Why, u.Why), t.GivenUp || u.GivenUp, t.NotThere || u.NotThere
		for _, d := range u.Examples {
			t.keep(d, 0)
		}
		for k, n := range u.Kinds {
			t.Kinds[k] += n
		}
	}
}

// Differ counts the answers that differ.
func (r *Result) Differ() (n int) {
	for i := range r.Questions {
		n += r.Questions[i].Differ
	}
	return n
}

// Asked counts the questions that both answered.
func (r *Result) Asked() (n int) {
	for i := range r.Questions {
		n += r.Questions[i].Asked
	}
	return n
}

// Unanswered lists the functions without any answer, in the order of the questions.
func (r *Result) Unanswered() (names []string) {
	for i := range r.Questions {
		if t := &r.Questions[i]; t.Asked == 0 {
			names = append(names, t.Function)
		}
	}
	return names
}

// Mute lists the functions without an answer that the image has and that were called.
func (r *Result) Mute() (names []string) {
	for i := range r.Questions {
		if t := &r.Questions[i]; t.Asked == 0 && t.Silent > 0 {
			names = append(names, t.Function)
		}
	}
	return names
}

// First says what happened to the first unanswered question.
func (r *Result) First() string {
	for i := range r.Questions {
		if t := &r.Questions[i]; t.Why != "" {
			return t.Function + ": " + t.Why
		}
	}
	return "it has none of the functions that decide about probes"
}

// WriteText writes a table of the questions, then the differences by kind with
// examples, and the questions that could not be asked.
func (r *Result) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "%8s  %8s  function\n", "asked", "differ")
	for i := range r.Questions {
		if t := &r.Questions[i]; !t.NotThere {
			fmt.Fprintf(b, "%8d  %8d  %s: %s\n", t.Asked, t.Differ, t.Function, t.About)
		}
	}
	fmt.Fprintf(b, "%8d  %8d  in all, at %d points\n", r.Asked(), r.Differ(), r.Points)
	for i := range r.Questions {
		r.Questions[i].writeDifferences(b)
	}
	r.writeLeft(b)
	fmt.Fprintln(b, "\n"+r.Summary())
	return b.Flush()
}

// Summary says the outcome in one line, and names the functions that gave no answer.
func (r *Result) Summary() string {
	names := r.Unanswered()
	text := fmt.Sprintf("%d of %d answers differ; ", r.Differ(), r.Asked())
	if len(names) == 0 {
		return text + fmt.Sprintf("all %d functions answered", len(r.Questions))
	}
	return text + fmt.Sprintf("%d of %d functions gave no answer: %s", len(names), len(r.Questions), strings.Join(names, ", "))
}

func (t *Answers) writeDifferences(w io.Writer) {
	for i := range t.Examples {
		d := &t.Examples[i]
		if i == 0 || t.Examples[i-1].kind() != d.kind() {
			by := ""
			if d.Rule != "" {
				by = " by " + d.Rule
			}
			fmt.Fprintf(w, "\n%s: the image says %s, the rules %s%s; %d times\n", t.Function, d.Own, d.Rules, by, t.Kinds[d.kind()])
		}
		fmt.Fprintf(w, "  %s  %s  % x  %s\n", d.Addr, d.Place, d.Code[:min(len(d.Code), 8)], decoder.Text(d.Code, d.Addr))
	}
}

// writeLeft writes the unanswered questions.
func (r *Result) writeLeft(w io.Writer) {
	if r.Booted && !slices.ContainsFunc(r.Questions, func(t Answers) bool { return t.NotThere || t.Silent > 0 }) {
		return
	}
	fmt.Fprintln(w, "\nnot asked, or not answered")
	for i := range r.Questions {
		switch t := &r.Questions[i]; {
		case t.NotThere:
			fmt.Fprintf(w, "  %s: the image has no such function, or several\n", t.Function)
		case t.Silent > 0:
			then := ""
			if t.GivenUp {
				then = "; it was not asked on"
			}
			fmt.Fprintf(w, "  %s: %d times, first %s%s\n", t.Function, t.Silent, t.Why, then)
		}
	}
	if r.Booted {
		return
	}
	for _, l := range Left {
		fmt.Fprintf(w, "  %s: %s\n", l.Function, l.Why)
	}
}

// WriteJSON writes an object for each question, one a line.
func (r *Result) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for i := range r.Questions {
		r.Questions[i].Unanswered = r.Questions[i].Asked == 0
		if err := e.Encode(&r.Questions[i]); err != nil {
			return err
		}
	}
	return nil
}

// Left are the questions that an image which was never booted cannot answer, and
// why.
var Left = []struct{ Function, Why string }{
	{"ftrace_location", "boot fills the tables of ftrace sites"},
	{"alternatives_text_reserved", "boot fills the list of lock prefixes"},
}
