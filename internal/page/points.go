package page

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"kprobelab"
	"kprobelab/internal/report"
	"kprobelab/profile"
	"kprobelab/x86"
)

// placesQuestion is about places of a function of the image or, without a name, of code.
type placesQuestion struct {
	codeQuestion
	identity
	Name string `json:"name"`
	// At are offsets in the function.
	At []int `json:"at"`
}

// asked keeps the function of the last question about places: the next question is mostly about the same.
type asked struct {
	key    string
	image  *opened
	start  x86.Addr
	size   uint64
	points *report.Points
}

// answers computes the answers for places of a function. A page requests those first that its reader sees.
func (p *Page) answers(q placesQuestion, _ []byte) ([]Byte, error) {
	a, err := p.asks(&q)
	if err != nil {
		return nil, err
	}
	list := make([]Byte, 0, len(q.At))
	for _, at := range q.At {
		if at < 0 || uint64(at) >= min(a.size, MaxCode) {
			return nil, errRequest
		}
		list = append(list, newByte(at, a.start, a.points.At(at)))
	}
	return list, nil
}

// asks returns the function of a question.
func (p *Page) asks(q *placesQuestion) (*asked, error) {
	of := *q
	of.At = nil
	key, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	if p.asked != nil && p.asked.key == string(key) && p.asked.image == p.image {
		return p.asked, nil
	}
	s, sym, err := p.about(&explainQuestion{codeQuestion: q.codeQuestion, identity: q.identity, Name: q.Name})
	if err != nil {
		return nil, err
	}
	p.asked = &asked{string(key), p.image, sym.Addr, sym.Size, s.Points(sym)}
	return p.asked, nil
}

// ByRelease is the answer for a place by the rules of a release.
type ByRelease struct {
	Release string `json:"release"`
	Byte
}

// releaseQuestion has a place of a function, and a release: its rules answer.
type releaseQuestion struct {
	placesQuestion
	By string `json:"by"`
}

// byRelease computes the answer for a place by the rules of another release, on the same code. Opening the image
// by those rules gives the same answer.
func (p *Page) byRelease(q releaseQuestion, _ []byte) (*ByRelease, error) {
	c, ok := profile.Named(q.By)
	if !ok || len(q.At) != 1 {
		return nil, errRequest
	}
	s, sym, err := p.about(&explainQuestion{codeQuestion: q.codeQuestion, identity: q.identity, Name: q.Name})
	if err != nil {
		return nil, err
	}
	if at := q.At[0]; at < 0 || uint64(at) >= sym.Size {
		return nil, errRequest
	}
	return &ByRelease{q.By, newByte(q.At[0], sym.Addr, byRules(s, c).Points(sym).At(q.At[0]))}, nil
}

// byRules returns the scan with the rules of another release.
func byRules(s *report.Scan, c *profile.Config) *report.Scan {
	other := *s
	other.Profile = c
	return &other
}

// watches returns a machine with a probe on a function's byte. Its calls come from a scenario or lesson that calls the function; without
// one it is one call with zeros, which the reader changes.
func (o *opened) watches(function string, offset int) *Scenario {
	s := &Scenario{Probes: "kprobe " + function, Release: o.scan.Profile.Name, Calls: function + "(" + o.zeros(function) + ")"}
	if offset > 0 {
		s.Probes += fmt.Sprintf("+%#x", offset)
	}
	if o.name != kprobelab.GuestKernel {
		return s
	}
	called := []string{}
	for _, other := range scenarios {
		called = append(called, other.Calls)
	}
	for _, l := range lessons {
		called = append(called, l.Scenario.Calls)
	}
	if i := slices.IndexFunc(called, func(calls string) bool { return strings.HasPrefix(calls, function+"(") }); i >= 0 {
		s.Calls = called[i]
	}
	return s
}

// zeros are as many as the function has parameters, as far as that is known.
func (o *opened) zeros(function string) string {
	proto, _ := o.img.Proto(function)
	return strings.TrimSuffix(strings.Repeat("0, ", len(proto.Params)), ", ")
}
