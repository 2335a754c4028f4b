package bpf

import (
	"encoding/xml"
)

// The form of JUnit, as CI hosts read it: a suite for each kernel, a case for each program.
type (
	suites struct {
		XMLName  xml.Name `xml:"testsuites"`
		Name     string   `xml:"name,attr"`
		Tests    int      `xml:"tests,attr"`
		Failures int      `xml:"failures,attr"`
		Errors   int      `xml:"errors,attr"`
		Suites   []*suite `xml:"testsuite"`
	}
	suite struct {
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Cases    []testCase `xml:"testcase"`
	}
	testCase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Failure *problem `xml:"failure"`
		Error   *problem `xml:"error"`
		Out     string   `xml:"system-out,omitempty"`
	}
	problem struct {
		Message string `xml:"message,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit returns the table as JUnit XML: a program that a kernel refuses or does not attach is a failure, a kernel that could not be
// asked an error.
func (t *Table) JUnit() []byte {
	doc := &suites{Name: "kprobelab bpf " + t.Object}
	for i := range t.Columns {
		c := &t.Columns[i]
		s := &suite{Name: c.Kernel}
		if c.Kernel == "" {
			s.Name = c.Release
		}
		for j := range c.Programs {
			p := &c.Programs[j]
			one := testCase{Class: s.Name, Name: p.Section + " " + p.Name, Out: p.Word()}
			if p.Bad() {
				one.Failure, one.Out = &problem{p.Word(), p.Why()}, ""
				s.Failures++
			}
			s.Cases = append(s.Cases, one)
		}
		if c.Err != "" {
			s.Cases = append(s.Cases, testCase{Class: s.Name, Name: t.Object, Error: &problem{Message: c.Err}})
			s.Errors++
		}
		s.Tests = len(s.Cases)
		doc.Tests, doc.Failures, doc.Errors = doc.Tests+s.Tests, doc.Failures+s.Failures, doc.Errors+s.Errors
		doc.Suites = append(doc.Suites, s)
	}
	out, err := xml.MarshalIndent(doc, "", "  ")
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return append([]byte(xml.Header), append(out, '\n')...)
}
