package report

import (
	"encoding/xml"
	"fmt"
	"io"
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
	out := junit{Tests: c.cells(), Failures: c.Refused + c.Hazardous}
	for j := range c.Images {
		s := junitSuite{Name: c.Images[j].suite(), Tests: len(c.Probes)}
		for i := range c.Probes {
			row := &c.Probes[i]
			cell, one := &row.Cells[j], junitCase{Name: row.title(), Class: s.Name}
			switch {
			case cell.NotAsked:
				s.Skipped++
				one.Skipped = &junitSkipped{cell.Detail}
			case c.harms(cell):
				s.Failures++
				one.Failure = &junitFailure{Message: cell.brief(row.Return), Type: "hazard " + hazardIDs(cell.Hazards), Text: cell.Hazards[0].Says}
			case cell.Attaches:
				one.Out = cell.brief(row.Return)
			default:
				s.Failures++
				one.Failure = &junitFailure{Message: cell.brief(row.Return), Type: cell.Reason.String(), Text: cell.Detail}
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

// WriteAnnotations writes a line for each probe that does not attach everywhere, in
// the form in which GitHub and hosts like it show it beside the list of probes: an error
// with the list's name, the line, and the kernels with their answers.
func (c *Check) WriteAnnotations(w io.Writer, list string) error {
	for i := range c.Probes {
		row := &c.Probes[i]
		text, title := c.refusals(row), " does not attach"
		if text == "" {
			text, title = c.dangers(row), " does harm"
		}
		if text == "" {
			continue
		}
		at := "file=" + property(list)
		if row.Line > 0 {
			at += fmt.Sprintf(",line=%d", row.Line)
		}
		if _, err := fmt.Fprintf(w, "::error %s,title=%s::%s\n", at, property(row.title()+title), message(text)); err != nil {
			return err
		}
	}
	return nil
}

// refusals are the stretches of kernels that refuse a probe.
func (c *Check) refusals(row *CheckRow) string {
	var list []string
	for _, r := range c.runsOf(row) {
		if cell := &row.Cells[r.from]; !cell.Attaches && !cell.NotAsked {
			list = append(list, fmt.Sprintf("%s: %s (%s)", c.span(r), cell.brief(row.Return), cell.Detail))
		}
	}
	return strings.Join(list, "; ")
}

var (
	messageEscapes  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	propertyEscapes = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func message(s string) string  { return messageEscapes.Replace(s) }
func property(s string) string { return propertyEscapes.Replace(s) }
