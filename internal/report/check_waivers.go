package report

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"kprobelab/internal/tracing/word"
)

// Waiver is a line of a file of waivers: what is known to fail, where, and until when that is accepted.
type Waiver struct {
	// Probe and Kernel are texts in which * stands for any characters. Probe is a probe's text or the name of its program;
	// Kernel a release, with the distribution before it in an archive, or the word of --kernel.
	Probe  string `json:"probe"`
	Kernel string `json:"kernel"`
	// Until is the last day, as 2027-01-31.
	Until  string `json:"until"`
	Reason string `json:"reason"`
	// File and Line are its place.
	File string `json:"file"`
	Line int    `json:"line"`
}

// WaiverUse is a waiver after a check.
type WaiverUse struct {
	Waiver
	Expired bool `json:"expired,omitempty"`
	// Asked counts the cells that the waiver is about, Used the failures that it lets pass.
	Asked int `json:"asked"`
	Used  int `json:"used"`
}

const day = "2006-01-02"

// Today is the date, as in a waiver.
func Today() string { return time.Now().UTC().Format(day) }

// ReadWaivers reads lines of PROBE KERNEL DATE REASON, with white space between them. Empty lines and comments (#) are left out.
func ReadWaivers(name string, text []byte) (list []Waiver, err error) {
	n := 0
	for line := range bytes.Lines(text) {
		n++
		w := Waiver{File: name, Line: n}
		words := word.Split(string(line))
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) > 3 {
			w.Probe, w.Kernel, w.Until, w.Reason = printable(words[0]), printable(words[1]), printable(words[2]), printable(strings.Join(words[3:], " "))
		}
		if w.Reason == "" {
			return nil, fmt.Errorf("%s:%d: a waiver is PROBE KERNEL DATE REASON", name, n)
		}
		if _, err := time.Parse(day, w.Until); err != nil {
			return nil, fmt.Errorf("%s:%d: %q is no date such as 2027-01-31", name, n, w.Until)
		}
		list = append(list, w)
	}
	return list, nil
}

func (w *Waiver) at() string { return fmt.Sprintf("%s:%d", w.File, w.Line) }

// waived returns the waiver in force for the cell of a row, nil if there is none, and counts what the waivers are about.
func (c *Check) waived(row *CheckRow, j int, failed bool) (found *WaiverUse) {
	for i := range c.Waivers {
		w := &c.Waivers[i]
		if !matchAny(w.Probe, row.Text, row.Program) || !matchAny(w.Kernel, c.Images[j].called()...) {
			continue
		}
		w.Asked++
		if failed && !w.Expired && found == nil && !row.Optional {
			w.Used++
			found = w
		}
	}
	return found
}

// called are the names of a kernel.
func (i *CheckImage) called() []string {
	names := []string{i.Release, i.Asked, i.Name, filepath.Base(i.Name)}
	if i.Distribution != "" {
		names = append(names, i.Distribution+" "+i.Release, i.Distribution)
	}
	return names
}

// matchAny reports whether a pattern with * matches one of the texts; no pattern matches an empty text.
func matchAny(pattern string, texts ...string) bool {
	for _, t := range texts {
		if t != "" && starMatches(pattern, t) {
			return true
		}
	}
	return false
}

// starMatches reports whether a pattern matches a text; * stands for any characters, also for a slash and none.
func starMatches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok || len(parts) == 1 {
		return ok && text == ""
	}
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(text, p)
		if i < 0 {
			return false
		}
		text = text[i+len(p):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}
