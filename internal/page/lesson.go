package page

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"kprobelab/internal/bounded"
)

const (
	byProtocol    = "protocol"
	byInstruction = "instruction"
)

// Lesson is a machine, a question of what it will do, and a variation. docs/lessons.md says how to write one.
type Lesson struct {
	// Version is the format's: 1.
	Version int `json:"lesson"`
	// ID names the lesson in what the browser keeps.
	ID    string `json:"id"`
	Title string `json:"title"`
	// Text says what is to be seen, before the question.
	Text     []string `json:"text"`
	Scenario Scenario `json:"scenario"`
	// By is "protocol" or "instruction", as in a question of the machine; Start is the schedule at
	// which the lesson begins, Lead the one that begins what everybody in turn do.
	By    string `json:"by"`
	Start string `json:"start,omitempty"`
	Lead  string `json:"lead,omitempty"`
	// Question asks what will happen. Of the answers one is true at the moment Until, which the
	// machine comes to by Forward.
	Question string    `json:"question"`
	Until    Condition `json:"until"`
	Answers  []Choice  `json:"answers"`
	// Explain is shown once the answer is right.
	Explain []string  `json:"explain"`
	Vary    Variation `json:"vary"`
}

// Choice is an answer. It is right if When holds; Why says why it is right, or wrong.
type Choice struct {
	Text string    `json:"text"`
	When Condition `json:"when"`
	Why  string    `json:"why"`
}

// Variation asks the reader to change the machine or its order, until Goal holds.
type Variation struct {
	Text string `json:"text"`
	// Change are the parts of the scenario that the reader changes: probes, calls, release, careless; none: the order alone.
	Change []string  `json:"change,omitempty"`
	Goal   Condition `json:"goal"`
	// Way is one that leads there: a scenario, and the order that Forward takes in it.
	Way  Way    `json:"way"`
	Done string `json:"done"`
}

// Way is a scenario with a lead.
type Way struct {
	Scenario
	Lead string `json:"lead,omitempty"`
}

//go:embed lessons/*.json
var lessonFiles embed.FS

// lessons are the program's own, in the order of their files' names.
var lessons = ownLessons()

func ownLessons() (list []Lesson) {
	names, err := fs.Glob(lessonFiles, "lessons/*.json")
	for _, name := range names {
		var l *Lesson
		b, wrong := lessonFiles.ReadFile(name)
		if wrong == nil {
			l, wrong = readLesson(b)
		}
		if wrong != nil {
			panic(fmt.Sprintf("BUG: %s: %v", name, wrong)) // the files are part of the program
		}
		list = append(list, *l)
	}
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return list
}

// IsLesson reports whether a file is meant to be a lesson.
func IsLesson(b []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(b), []byte("{")) && bytes.Contains(b[:min(len(b), 4096)], []byte(`"lesson"`))
}

// readLesson reads a lesson without playing it.
func readLesson(b []byte) (*Lesson, error) {
	if len(b) > bounded.PageLesson {
		return nil, fmt.Errorf("a lesson has at most %d bytes", bounded.PageLesson)
	}
	l := &Lesson{By: byProtocol}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(l); err != nil {
		return nil, fmt.Errorf("it is no lesson: %s", wordsOfJSON(err, b))
	}
	return l, l.complete()
}

// wordsOfJSON says in words what is wrong with a text in JSON.
func wordsOfJSON(err error, b []byte) string {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Sprintf("line %d: %v", 1+bytes.Count(b[:min(int(syntax.Offset), len(b))], []byte("\n")), syntax)
	case errors.As(err, &kind):
		return fmt.Sprintf("line %d: %s is a %s", 1+bytes.Count(b[:min(int(kind.Offset), len(b))], []byte("\n")), kind.Field, kind.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// complete looks whether all parts are there.
func (l *Lesson) complete() error {
	missing := ""
	for _, part := range []struct {
		name  string
		there bool
	}{
		{"id", l.ID != ""}, {"title", l.Title != ""}, {"text", len(l.Text) > 0}, {"question", l.Question != ""}, {"until", !l.Until.empty()},
		{"explain", len(l.Explain) > 0}, {"vary.text", l.Vary.Text != ""}, {"vary.goal", !l.Vary.Goal.empty()}, {"vary.done", l.Vary.Done != ""},
	} {
		if !part.there && missing == "" {
			missing = part.name
		}
	}
	switch {
	case l.Version != 1:
		return fmt.Errorf("\"lesson\" is %d: this program reads version 1 of the format", l.Version)
	case missing != "":
		return fmt.Errorf("the lesson has no %q", missing)
	case l.By != byProtocol && l.By != byInstruction:
		return fmt.Errorf("\"by\" is %q: it is %q or %q", l.By, byProtocol, byInstruction)
	case len(l.Answers) < 2 || len(l.Answers) > 4:
		return fmt.Errorf("the lesson has %d answers: it has 2 to 4, best 3", len(l.Answers))
	}
	for i, a := range l.Answers {
		if a.Text == "" || a.Why == "" || a.When.empty() {
			return fmt.Errorf("answer %d lacks its \"text\", its \"when\" or its \"why\"", i+1)
		}
	}
	for _, c := range l.conditions() {
		if wrong := c.wrong(); wrong != "" {
			return errors.New(wrong)
		}
	}
	for _, part := range l.Vary.Change {
		if !strings.Contains(" probes calls release careless ", " "+part+" ") {
			return fmt.Errorf("\"vary.change\" has %q: a reader changes probes, calls, release or careless", part)
		}
	}
	return nil
}

func (l *Lesson) conditions() []*Condition {
	list := []*Condition{&l.Until, &l.Vary.Goal}
	for i := range l.Answers {
		list = append(list, &l.Answers[i].When)
	}
	return list
}

// CheckLesson reads a lesson's file and plays it, as a reader does: by Forward in its own mode. The error says in a
// sentence what cannot be done.
func CheckLesson(b []byte) error {
	_, err := playedLesson(b)
	return err
}

func playedLesson(b []byte) (*Lesson, error) {
	l, err := readLesson(b)
	if err != nil {
		return nil, err
	}
	_, _, err = l.judge()
	if err == nil {
		err = l.vary()
	}
	if err != nil {
		return nil, fmt.Errorf("%q: %w", l.Title, err)
	}
	return l, nil
}

// presses are the most that a lesson may take.
const presses = 100

// judge plays the machine to the moment of the question, and returns the number of the answer that is true there.
func (l *Lesson) judge() (answer int, at *player, err error) {
	p, err := newPlayer(l.Scenario, l.By, l.Start, l.Lead)
	if err != nil {
		return 0, nil, err
	}
	defer p.close()
	for n := 0; !p.holds(&l.Until); n++ {
		moved, err := p.forward()
		switch {
		case err != nil:
			return 0, nil, err
		case n == presses:
			return 0, nil, fmt.Errorf("after %d presses of Forward, \"until\" does not hold yet: begin later, by \"start\"", presses)
		case !moved:
			return 0, nil, errors.New("the machine comes to its end, and \"until\" never holds")
		}
	}
	if p.presses == 0 {
		return 0, nil, errors.New("\"until\" holds at the beginning already: there is nothing to predict")
	}
	answer = -1
	for i := range l.Answers {
		switch {
		case !p.holds(&l.Answers[i].When):
		case answer >= 0:
			return 0, nil, fmt.Errorf("answers %d and %d are both true at the moment of the question", answer+1, i+1)
		default:
			answer = i
		}
	}
	if answer < 0 {
		return 0, nil, fmt.Errorf("no answer is true at the moment of the question (after %d presses of Forward)", p.presses)
	}
	return answer, p, nil
}

// vary looks whether the variation has something to do, and whether its way leads to the goal.
func (l *Lesson) vary() error {
	p, err := newPlayer(l.Scenario, l.By, l.Start, l.Lead)
	if err != nil {
		return err
	}
	reached := p.holds(&l.Vary.Goal)
	p.close()
	if reached {
		return errors.New("the variation's goal is reached before the reader does anything")
	}
	way := l.way()
	for part, changed := range map[string]bool{
		"probes": way.Probes != l.Scenario.Probes, "calls": way.Calls != l.Scenario.Calls,
		"release": way.Release != l.Scenario.Release, "careless": way.Careless != l.Scenario.Careless,
	} {
		if changed && !strings.Contains(strings.Join(l.Vary.Change, " "), part) {
			return fmt.Errorf("\"vary.way\" changes %s, which \"vary.change\" does not name", part)
		}
	}
	if p, err = newPlayer(way.Scenario, l.By, "", way.Lead); err != nil {
		return fmt.Errorf("the variation: %w", err)
	}
	defer p.close()
	for n := 0; !p.holds(&l.Vary.Goal); n++ {
		moved, err := p.forward()
		switch {
		case err != nil:
			return fmt.Errorf("the variation: %w", err)
		case !moved || n == presses:
			return errors.New("\"vary.way\" does not lead to \"vary.goal\"")
		}
	}
	return nil
}

// way is the variation's, with the lesson's own scenario where it says nothing.
func (l *Lesson) way() Way {
	w := l.Vary.Way
	if w.Probes == "" {
		w.Probes = l.Scenario.Probes
	}
	if w.Calls == "" {
		w.Calls = l.Scenario.Calls
	}
	if w.Release == "" {
		w.Release = l.Scenario.Release
	}
	return w
}

// Predicted says whether a prediction is right, and where the machine shows it.
type Predicted struct {
	Right bool   `json:"right"`
	Why   string `json:"why"`
	// Answer is the number of the right one; Schedule and Sub are the moment.
	Answer   int    `json:"answer"`
	Schedule string `json:"schedule"`
	Sub      int    `json:"sub"`
}

type prediction struct {
	Lesson Lesson `json:"of"`
	Answer int    `json:"answer"`
}

// predict asks the lesson's machine which answer is right.
func (p *Page) predict(q prediction, _ []byte) (*Predicted, error) {
	if err := q.Lesson.complete(); err != nil {
		return nil, err
	}
	if q.Answer < 0 || q.Answer >= len(q.Lesson.Answers) {
		return nil, errRequest
	}
	right, at, err := q.Lesson.judge()
	if err != nil {
		return nil, err
	}
	return &Predicted{
		Right: q.Answer == right, Why: q.Lesson.Answers[q.Answer].Why, Answer: right, Schedule: at.view.Schedule, Sub: at.view.Sub,
	}, nil
}

type goalQuestion struct {
	Scenario Scenario  `json:"scenario"`
	Schedule string    `json:"schedule"`
	Sub      int       `json:"sub"`
	By       string    `json:"by"`
	Goal     Condition `json:"goal"`
}

// Goal says whether a machine has reached a goal.
type Goal struct {
	Reached bool `json:"reached"`
}

// goal asks whether the reader's machine has reached a goal.
func (p *Page) goal(q goalQuestion, _ []byte) (*Goal, error) {
	at, err := newPlayer(q.Scenario, q.By, q.Schedule, "")
	if err != nil {
		return nil, err
	}
	defer at.close()
	if q.Sub < -1 || q.Sub >= len(at.page.run.moments) {
		return nil, errRequest
	}
	if q.Sub >= 0 { // not all events of the last step have happened
		at.events = at.events[:len(at.events)-(len(at.page.run.moments)-1-q.Sub)]
	}
	at.sub = q.Sub
	return &Goal{at.holds(&q.Goal)}, nil
}

type dropped struct {
	Name string `json:"name"`
}

// dropLesson reads a lesson's file, and plays it before it is offered.
func (p *Page) dropLesson(q dropped, file []byte) (*Lesson, error) {
	l, err := playedLesson(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q.Name, err)
	}
	return l, nil
}
