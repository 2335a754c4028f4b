package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// junit is the JUnit report as CI hosts read it: a suite for each kernel, a case for
// each probe.
type junit struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr,omitempty"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string        `xml:"name,attr"`
	Class   string        `xml:"classname,attr"`
	Failure *junitFailure `xml:"failure,omitempty"`
	Skipped *junitSkipped `xml:"skipped,omitempty"`
	Out     string        `xml:"system-out,omitempty"`
}

type junitSkipped struct {
	Message string `xml:"message,attr"`
}

type junitFailure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the report as JUnit XML.
func (c *Check) WriteJUnit(w io.Writer) error {
	out := junit{Tests: c.cells(), Failures: c.fails()}
	for j := range c.Images {
		s := junitSuite{Name: c.Images[j].suite(), Tests: len(c.Probes)}
		for i := range c.Probes {
			row := &c.Probes[i]
			cell, one := &row.Cells[j], junitCase{Name: row.title(), Class: s.Name}
			switch {
			case cell.fails():
				s.Failures++
				one.Failure = cell.failure(row.shown(j))
			case cell.Passes != "":
				s.Skipped++
				one.Skipped = &junitSkipped{strings.TrimSpace(cell.Passes + " " + cell.Why)}
			case cell.NotAsked && cell.Load == nil:
				s.Skipped++
				one.Skipped = &junitSkipped{cell.Detail}
			default:
				one.Out = row.shown(j)
			}
			s.Cases = append(s.Cases, one)
		}
		out.Suites = append(out.Suites, s)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(&out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// title names a probe, and its program if the program has several.
func (r *CheckRow) title() string {
	if r.Program == "" {
		return r.Text
	}
	return r.Text + " " + r.Program
}

// suite is the title with the build id, so that it stays the same whatever else is asked.
func (i *CheckImage) suite() string {
	if id := i.shortID(); id != "" && !strings.Contains(i.apart, id) {
		return i.named() + " " + id
	}
	return i.named()
}

// shortID returns the first eight digits of the build id, "" if there is none.
func (i *CheckImage) shortID() string {
	id := strings.TrimPrefix(i.BuildID, "text-")
	return id[:min(len(id), 8)]
}

// failure is the first fault of a cell.
func (c *CheckCell) failure(message string) *junitFailure {
	switch {
	case c.has(loadFault), c.has(attachFault) && c.Load != nil && c.Load.Bad():
		return &junitFailure{Message: message, Type: c.Load.Word(), Text: c.Load.Why()}
	case c.has(attachFault):
		return &junitFailure{Message: message, Type: c.Reason.String(), Text: c.Detail}
	}
	return &junitFailure{Message: message, Type: "hazard " + hazardIDs(c.Hazards), Text: c.Hazards[0].Says}
}

// WriteAnnotations writes a line for each probe that fails, in the form in which GitHub and hosts like it show it beside a file: an
// error with the file's name, the line, and the kernels with their answers. The file is a program's C source, if the object tells
// it; else the list of probes.
func (c *Check) WriteAnnotations(w io.Writer, list string) error {
	for i := range c.Probes {
		row := &c.Probes[i]
		said := map[string][]string{}
		on := map[[2]string][]int{}
		var order []string
		for j := range row.Cells {
			cell := &row.Cells[j]
			if !cell.fails() {
				continue
			}
			at, title, text := cell.annotation(row, j, list)
			head := fmt.Sprintf("%s,title=%s", at, property(row.title()+title))
			if said[head] == nil {
				order = append(order, head)
			}
			if on[[2]string{head, text}] == nil {
				said[head] = append(said[head], text)
			}
			on[[2]string{head, text}] = append(on[[2]string{head, text}], j)
		}
		for _, head := range order {
			var texts []string
			for _, text := range said[head] {
				texts = append(texts, c.spans(on[[2]string{head, text}])+": "+text)
			}
			if _, err := fmt.Fprintf(w, "::error %s::%s\n", head, message(strings.Join(texts, "; "))); err != nil {
				return err
			}
		}
	}
	return nil
}

// annotation has the text of an annotation about a cell that fails, and its place.
func (c *CheckCell) annotation(row *CheckRow, j int, list string) (at, title, text string) {
	file, line := list, row.Line
	if row.File != "" {
		file = row.File
	}
	switch loaded := c.Load != nil && c.Load.Bad(); {
	case loaded:
		title, text = " does not load", c.Load.Why()
		if c.Load.Loads {
			title = " does not attach"
		}
		if b := c.Load.Blame; b != nil && b.File != "" {
			file, line = printable(b.File), b.Line
		}
		text = oneLine(text)
	case c.has(attachFault):
		title, text = " does not attach", fmt.Sprintf("%s (%s)", row.shown(j), c.Detail)
	default:
		title, text = " does harm", fmt.Sprintf("%s (%s)", row.shown(j), c.Hazards[0].Says)
	}
	at = "file=" + property(here(file))
	if line > 0 {
		at += fmt.Sprintf(",line=%d", line)
	}
	return at, title, text
}

// here is a file's path below the working directory, where it is there: CI hosts want that.
func here(file string) string {
	dir, err := os.Getwd()
	if err != nil || !filepath.IsAbs(file) {
		return file
	}
	if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return file
}

var (
	messageEscapes  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	propertyEscapes = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func message(s string) string  { return messageEscapes.Replace(s) }
func property(s string) string { return propertyEscapes.Replace(s) }
