package page

import (
	"encoding/json"
	"errors"
	"fmt"

	"kprobelab/internal/assemble"
	"kprobelab/internal/bounded"
	"kprobelab/internal/printable"
	"kprobelab/profile"
)

// Page is a page's state: the image that it has open, and its machine. It is for one goroutine
// at a time.
type Page struct {
	image *opened
	// run is the machine that is watched, kept what was shown of it.
	run  *run
	kept kept
	// reel is the film that is played.
	reel *reel
	// asked is the function of the last question about places.
	asked *asked
	// hunt is the search that was begun last.
	hunt *hunt
}

// requests are the functions that answer requests, by name. file is the file in a request.
var requests = map[string]func(p *Page, request, file []byte) (any, error){
	"hello":      with(func(*Page, struct{}, []byte) (*Hello, error) { return hello(), nil }),
	"code":       with((*Page).code),
	"open":       with((*Page).open),
	"search":     with((*Page).search),
	"function":   with((*Page).function),
	"explain":    with((*Page).explain),
	"answers":    with((*Page).answers),
	"release":    with((*Page).byRelease),
	"gnu":        with(gnu),
	"command":    with((*Page).command),
	"watch":      with((*Page).watch),
	"openfilm":   with((*Page).openFilm),
	"film":       with((*Page).play),
	"explorable": with((*Page).explorable),
	"explore":    with((*Page).explore),
	"hunt":       with((*Page).hunted),
	"order":      with((*Page).order),
	"lessons":    with(func(*Page, struct{}, []byte) ([]Lesson, error) { return lessons, nil }),
	"predict":    with((*Page).predict),
	"goal":       with((*Page).goal),
	"droplesson": with((*Page).dropLesson),
}

// with reads a request's JSON.
func with[Q, A any](do func(*Page, Q, []byte) (A, error)) func(*Page, []byte, []byte) (any, error) {
	return func(p *Page, request, file []byte) (any, error) {
		var q Q
		if err := json.Unmarshal(request, &q); err != nil {
			return nil, errRequest
		}
		return do(p, q, file)
	}
}

// errRequest is a request that the page does not make, such as an address that was changed by hand.
var errRequest = errors.New("this address is not one that the page has made")

// Answer answers the request `{"do": NAME, …}`: with the answer's JSON, or with
// `{"error": SENTENCE}`.
func (p *Page) Answer(request string, file []byte) (answer string) {
	defer func() {
		if r := recover(); r != nil {
			answer = failed(fmt.Errorf("the program made a mistake: %v; load the page again", r))
		}
	}()
	var q struct {
		Do string `json:"do"`
	}
	if len(request) > bounded.PageRequest || json.Unmarshal([]byte(request), &q) != nil || requests[q.Do] == nil {
		return failed(errRequest)
	}
	a, err := requests[q.Do](p, []byte(request), file)
	if err != nil {
		return failed(err)
	}
	b, err := json.Marshal(a)
	if err != nil {
		return failed(err)
	}
	return string(b)
}

// failed is the answer with an error. offer names a request that takes the input nevertheless.
func failed(err error) string {
	says := map[string]string{"error": printable.Name(err.Error())}
	var intel *assemble.IntelError
	if errors.As(err, &intel) {
		says["offer"] = "gnu"
	}
	b, _ := json.Marshal(says) // strings cannot fail
	return string(b)
}

// Hello has the facts with which a page begins.
type Hello struct {
	// Releases are the kernels with rules of their own.
	Releases []Release `json:"releases"`
	Default  string    `json:"default"`
	// Scenarios are the machines that the page offers.
	Scenarios []Named `json:"scenarios"`
	// MaxImage is the largest image in bytes, MaxCode the most bytes of a
	// function that are explained.
	MaxImage int64 `json:"max_image"`
	MaxCode  int   `json:"max_code"`
	// Film is the name of the film that is part of the program.
	Film string `json:"film"`
}

// Release is a named profile.
type Release struct {
	Name  string `json:"name"`
	About string `json:"about"`
}

func hello() *Hello {
	h := &Hello{Default: profile.Default, Scenarios: scenarios, MaxImage: MaxImage, MaxCode: MaxCode, Film: exampleName}
	for _, name := range profile.All() {
		c, _ := profile.Named(name)
		h.Releases = append(h.Releases, Release{name, c.Describes})
	}
	return h
}
