package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"kprobelab/internal/bounded"
	"kprobelab/internal/tools/conformance/boottext"
	"kprobelab/kimage"
)

// Result counts the answers of one kernel that are equal to the computed ones. It is written as one line of JSON.
type Result struct {
	// Kernel is the release as uname -r says it, CPU the processor, Date the day
	// on which the kernel was booted or compared again.
	Kernel string `json:"kernel"`
	CPU    string `json:"cpu"`
	Date   string `json:"date"`

	Points   Score `json:"points"`
	Names    Score `json:"names"`
	Programs Score `json:"programs"`
	// OnlyEvents is Agreement's, of the points.
	OnlyEvents int `json:"only_events"`
	// Left is Agreement's, of points and programs.
	Left int `json:"left,omitempty"`
	// Text has the bytes compared and the same ones; Unexplained of the others
	// have no known cause, Causes counts the rest.
	Text        Score          `json:"text"`
	Unexplained int            `json:"unexplained"`
	Causes      map[string]int `json:"causes"`
}

// Score counts questions: Asked all of them, Same the ones with equal answers.
type Score struct {
	Asked int `json:"asked"`
	Same  int `json:"same"`
}

// Differences counts answers that differ, and bytes of text without a known cause.
func (r *Result) Differences() int {
	n := r.Unexplained
	for _, s := range []Score{r.Points, r.Names, r.Programs} {
		n += s.Asked - s.Same
	}
	return n
}

// Compare compares the answers with what is computed for the image, and writes
// how many are the same and every difference to w. The result has no Kernel, CPU
// and Date.
func (a *Asked) Compare(img *kimage.Image, w io.Writer) (*Result, error) {
	text, err := TextOf(img)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(w, "  the text after booting, computed and real:")
	tally := boottext.Compare(img, text.Start, a.Booted.Text, a.Booted.Clocks)
	tally.WriteText(w)
	r := &Result{
		Text:        Score{tally.Bytes, tally.Bytes - tally.Differ},
		Unexplained: tally.Unexplained, Causes: tally.Causes,
	}
	points, err := ComparePoints(img, a.Points, len(a.Names), &a.Booted)
	if err != nil {
		return nil, err
	}
	r.Points, r.OnlyEvents = points.write(w, "points by address"), points.OnlyEvents
	fmt.Fprintf(w, "  of the refused points, %d only by kprobe_events\n", points.OnlyEvents)
	names, err := CompareNames(img, len(a.Points), a.Names, &a.Booted)
	if err != nil {
		return nil, err
	}
	r.Names = names.write(w, "definitions by name")
	r.Left = points.Left
	if a.Object == nil {
		return r, nil
	}
	programs, err := CompareObject(img, a.Object, &a.Booted)
	if err != nil {
		return nil, err
	}
	r.Programs, r.Left = programs.write(w, "programs of the BPF object"), points.Left+programs.Left
	return r, nil
}

func (a *Agreement) write(w io.Writer, what string) Score {
	fmt.Fprintf(w, "  %s: %s\n", what, a)
	if a.Left > 0 {
		fmt.Fprintf(w, "    %d not enabled: they stop the kernel, or one near them does\n", a.Left)
	}
	for _, d := range a.Differences {
		fmt.Fprintln(w, "    "+d)
	}
	return Score{a.Asked, a.Same}
}

// Save writes the result into a file, as a line.
func (r *Result) Save(file string) error {
	return replaceFile(file, func(w io.Writer) error { return json.NewEncoder(w).Encode(r) })
}

// maxResults bounds a file of results.
const maxResults = 16 << 20

// LoadResults reads a file of results, one a line.
func LoadResults(file string) ([]Result, error) {
	b, err := bounded.ReadFile(file, maxResults)
	if err != nil {
		return nil, err
	}
	var list []Result
	for d := json.NewDecoder(bytes.NewReader(b)); ; {
		var r Result
		err := d.Decode(&r)
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		list = append(list, r)
	}
}
