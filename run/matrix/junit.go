package matrix

import (
	"encoding/xml"
	"errors"
	"fmt"
	"time"

	"kprobelab/internal/outfile"
)

// The form of JUnit, as CI services read it.
type (
	suites struct {
		XMLName xml.Name `xml:"testsuites"`
		Name    string   `xml:"name,attr"`
		suiteCounts
		Suite suite `xml:"testsuite"`
	}
	suite struct {
		Name string `xml:"name,attr"`
		suiteCounts
		Cases []testCase `xml:"testcase"`
	}
	suiteCounts struct {
		Tests    int    `xml:"tests,attr"`
		Failures int    `xml:"failures,attr"`
		Errors   int    `xml:"errors,attr"`
		Skipped  int    `xml:"skipped,attr"`
		Time     string `xml:"time,attr"`
	}
	testCase struct {
		Class   string   `xml:"classname,attr"`
		Name    string   `xml:"name,attr"`
		Time    string   `xml:"time,attr"`
		Failure *problem `xml:"failure"`
		Error   *problem `xml:"error"`
		Skipped *problem `xml:"skipped"`
		Out     string   `xml:"system-out,omitempty"`
		Err     string   `xml:"system-err,omitempty"`
	}
	problem struct {
		Message string `xml:"message,attr"`
	}
)

// JUnit returns the matrix as JUnit XML: a test suite with a test case for each kernel. A program that ends with an exit
// code other than 0 is a failure, a kernel on which it did not run to its end an error, a kernel whose turn did not come is
// skipped. Times are real.
func (m *Matrix) JUnit(program string) ([]byte, error) {
	doc := &suites{Name: "kprobelab exec", Suite: suite{Name: program}}
	n := &doc.Suite.suiteCounts
	total := time.Duration(0)
	for _, c := range m.Cells {
		t := testCase{Class: "kprobelab.exec", Name: c.Kernel, Time: seconds(c.Took), Out: c.Stdout.String(), Err: c.Stderr.String()}
		switch {
		case errors.Is(c.Err, ErrEnded):
			t.Skipped = &problem{c.Err.Error()}
			n.Skipped++
		case c.Err != nil:
			t.Error = &problem{c.Err.Error()}
			n.Errors++
		case c.Code != 0:
			t.Failure = &problem{fmt.Sprintf("exit code %d", c.Code)}
			n.Failures++
		}
		total += c.Took
		doc.Suite.Cases = append(doc.Suite.Cases, t)
	}
	n.Tests, n.Time = len(m.Cells), seconds(total)
	doc.suiteCounts = *n
	b, err := xml.MarshalIndent(doc, "", "  ")
	return append([]byte(xml.Header), append(b, '\n')...), err
}

// WriteJUnit writes JUnit to a file.
func (m *Matrix) WriteJUnit(file, program string) error {
	b, err := m.JUnit(program)
	if err != nil {
		return err
	}
	return outfile.Write(file, b)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
