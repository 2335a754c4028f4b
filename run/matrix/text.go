package matrix

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"kprobelab/internal/colour"
	"kprobelab/internal/printable"
)

// Whole is the cell's standard output as text that more can follow: its last line has an end, and an empty line follows.
func (c *Cell) Whole() []byte {
	b := bytes.Clone(c.Stdout.Bytes())
	if len(b) > 0 && b[len(b)-1] != '\n' {
		b = append(b, '\n')
	}
	if len(b) > 0 {
		b = append(b, '\n')
	}
	return b
}

// Table writes a line for each kernel: its name, its release, the exit code, and how its output differs from the
// base's, or why there is none.
func (m *Matrix) Table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "kernel\trelease\texit\toutput")
	for _, c := range m.Cells {
		release, output := c.Release, m.output(c)
		if release == "" {
			release = "-"
		}
		if c.Err != nil {
			output = strings.TrimSuffix(printable.Name(strings.ReplaceAll(c.Err.Error(), "\n", "; "))+"; "+output, "; ")
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%s\n", printable.Name(c.Kernel), printable.Name(release), c.Code, output)
	}
	return t.Flush()
}

// output says how a kernel's output compares with the base's.
func (m *Matrix) output(c *Cell) string {
	switch {
	case !c.Ran():
		return ""
	case c == m.Base():
		return "the base"
	}
	return m.Difference(c).String()
}

// Diffs writes the differences of each kernel from the base.
func (m *Matrix) Diffs(w io.Writer, style colour.Style) error {
	for _, c := range m.Cells {
		d := m.Difference(c)
		if d.Diff == "" {
			continue
		}
		if _, err := io.WriteString(w, "\n"); err != nil {
			return err
		}
		for line := range strings.Lines(d.Diff) {
			text := strings.TrimSuffix(line, "\n")
			switch text[:min(1, len(text))] {
			case "-":
				text = style.Red(text)
			case "+":
				text = style.Cyan(text)
			}
			if _, err := io.WriteString(w, text+"\n"); err != nil {
				return err
			}
		}
	}
	return nil
}

// Output takes what Show prints, and says how to print it.
type Output struct {
	// Out gets tables and differences, Err remarks, RawOut and RawErr the output of the base's program.
	Out, Err, RawOut, RawErr io.Writer
	// Colour colours differences.
	Colour bool
	// JUnit, if not "", is a file that gets the exit codes as JUnit XML.
	JUnit string
}

// Show prints the matrix, and returns the exit code of all kernels together. The error is of an output; with code 3 it is the
// JUnit file's.
func (m *Matrix) Show(form Form, o *Output) (code int, err error) {
	if o.JUnit != "" {
		if err := m.WriteJUnit(o.JUnit, form.Program); err != nil {
			return 3, err
		}
	}
	if form.JSON {
		err = m.JSON(o.Out, form.Program)
	} else {
		if base := m.Base(); base != nil {
			_, _ = o.RawErr.Write(base.Stderr.Bytes())
			_, _ = o.RawOut.Write(base.Whole())
		}
		err = errors.Join(m.Table(o.Out), m.Diffs(o.Out, colour.Style(o.Colour)))
		if text := m.Repeated(); text != "" {
			fmt.Fprintln(o.Err, text)
		}
	}
	if err != nil {
		return 0, err
	}
	return m.Code(), nil
}
