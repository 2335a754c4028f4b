package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"kprobelab/kprobes/hazard"
	"kprobelab/shard"
)

// Column is the answer of one kernel for all probes, or the reason why the kernel could not be read.
type Column struct {
	Check  *Check
	Unread error
}

// answered is a Column in JSON.
type answered struct {
	Check  *Check     `json:"check,omitempty"`
	Unread shard.Text `json:"unread,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (c Column) MarshalJSON() ([]byte, error) {
	if c.Unread != nil {
		return json.Marshal(answered{Unread: shard.Text(c.Unread.Error())})
	}
	return json.Marshal(answered{Check: c.Check})
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Column) UnmarshalJSON(b []byte) error {
	var a answered
	if err := json.Unmarshal(b, &a); err != nil {
		return err
	}
	*c = Column{Check: a.Check}
	if len(a.Unread) > 0 {
		c.Unread = errors.New(string(a.Unread))
		return nil
	}
	return a.Check.column()
}

// errColumn: a column has not the form of one.
var errColumn = errors.New("it is no answer of one kernel for all probes")

// column checks that a Check is about one kernel.
func (c *Check) column() error {
	if c == nil || len(c.Images) != 1 {
		return errColumn
	}
	for i := range c.Probes {
		if len(c.Probes[i].Cells) != 1 {
			return errColumn
		}
		for _, f := range c.Probes[i].Cells[0].Hazards {
			if _, ok := hazard.ByID(f.ID); !ok {
				return errColumn
			}
		}
	}
	return nil
}

// ErrProbes: columns are about different probes.
var ErrProbes = errors.New("the shards were asked about different probes")

// Joined makes the matrix of columns, in their order. unread are the errors of the kernels that could not be read; the error is
// ErrProbes.
func Joined(columns []Column, allow map[hazard.ID]bool) (c *Check, unread []error, err error) {
	c = &Check{Allow: allow}
	for i := range columns {
		one := columns[i].Check
		switch {
		case columns[i].Unread != nil:
			unread = append(unread, columns[i].Unread)
			continue
		case len(c.Images) > 0 && !c.about(one):
			return nil, nil, ErrProbes
		}
		c.Join(one)
	}
	return c, unread, nil
}

// about reports whether another matrix is about the same probes.
func (c *Check) about(o *Check) bool {
	if len(c.Probes) != len(o.Probes) {
		return false
	}
	for i := range c.Probes {
		a, b := &c.Probes[i].Probe, &o.Probes[i].Probe
		if a.Text != b.Text || a.Program != b.Program || a.Via != b.Via || a.Return != b.Return || a.Line != b.Line {
			return false
		}
	}
	return true
}

// Unread is one sentence of the files that cannot be read: the first, and how many more. It is nil if there are none.
func Unread(bad []error) error {
	switch len(bad) {
	case 0:
		return nil
	case 1:
		return bad[0]
	}
	return fmt.Errorf("%w; %s more cannot be read", bad[0], Counted(len(bad)-1, "file"))
}

// CheckFormats are the forms of check's output.
var CheckFormats = []string{"text", "tsv", "json", "junit", "annotations"}

// CheckFormat returns the form that flags ask for: --json and --tsv have one of their own, "" is text.
func CheckFormat(json, tsv bool, format string) (string, error) {
	switch {
	case json:
		return "json", nil
	case tsv:
		return "tsv", nil
	case format == "":
		return "text", nil
	case !slices.Contains(CheckFormats, format):
		return "", fmt.Errorf("%s, not %q", strings.Join(CheckFormats, ", "), format)
	}
	return format, nil
}

// CheckForm says how columns are printed.
type CheckForm struct {
	// Format is one of CheckFormats.
	Format string `json:"format"`
	// List is the file of the probes. Files counts the files of the archive.
	List  string `json:"list"`
	Files int    `json:"files"`
	// Changed leaves out what all kernels answer alike, in the text about an archive.
	Changed bool `json:"changed"`
	Gate    Gate `json:"gate"`
}

// Write writes the matrix of columns. bad says what is wrong with the probes, unread which kernels could not be read; if that is
// every one of them, nothing is written. notes gets sentences about waivers. The error is w's, or ErrProbes.
func (f *CheckForm) Write(w, notes io.Writer, columns []Column) (bad []string, unread, err error) {
	r, lost, err := Joined(columns, f.Gate.Allow)
	if unread = Unread(lost); err != nil || unread != nil && len(lost) == len(columns) {
		return nil, unread, err
	}
	r.Compare()
	r.Judge(&f.Gate, Today())
	for _, note := range r.Notes() {
		fmt.Fprintln(notes, note)
	}
	switch f.Format {
	case "json":
		err = r.WriteJSON(w)
	case "tsv":
		err = r.WriteTSV(w)
	case "junit":
		err = r.WriteJUnit(w)
	case "annotations":
		err = r.WriteAnnotations(w, f.List)
	default:
		if f.Files > 0 {
			err = r.WriteRuns(w, f.Changed)
		} else {
			err = r.WriteText(w)
		}
	}
	return r.Bad(), unread, err
}

// Show writes the matrix of columns, and sentences about waivers to notes; it returns the exit code of check with its reason. An error with code 0 is w's.
func (f *CheckForm) Show(w, notes io.Writer, columns []Column) (code int, err error) {
	bad, unread, err := f.Write(w, notes, columns)
	switch {
	case errors.Is(err, ErrProbes):
		return 3, err
	case err != nil:
		return 0, err
	case unread != nil:
		return 3, errors.New(strings.Join(append(bad, unread.Error()), "; "))
	case len(bad) > 0:
		return 1, errors.New(strings.Join(bad, ", "))
	}
	return 0, nil
}
