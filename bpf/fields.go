package bpf

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"text/tabwriter"

	"kprobelab/bpf/answer"
	"kprobelab/internal/printable"
)

// fieldKey names a field of all kernels.
type fieldKey struct{ kind, name string }

// fieldNames are the fields of all kernels, in the order of their names.
func (t *Table) fieldNames() (keys []fieldKey) {
	for _, c := range t.Columns {
		for _, f := range c.Fields {
			if k := (fieldKey{f.Kind, f.Name}); !slices.Contains(keys, k) {
				keys = append(keys, k)
			}
		}
	}
	slices.SortFunc(keys, func(a, b fieldKey) int { return strings.Compare(a.name+" "+a.kind, b.name+" "+b.kind) })
	return keys
}

func (c *Column) field(k fieldKey) *answer.Field {
	for i := range c.Fields {
		if c.Fields[i].Kind == k.kind && c.Fields[i].Name == k.name {
			return &c.Fields[i]
		}
	}
	return nil
}

// harmless is a word for a field that CO-RE cannot relocate, where no program is refused for it: "guarded" where all programs
// ask first, "unreached" where the verifier never comes to the instruction; "" where one is refused.
func (c *Column) harmless(f *answer.Field) string {
	if f.Guarded {
		return "guarded"
	}
	for _, name := range f.Programs {
		if p := c.program(name); p == nil || !p.Loads {
			return ""
		}
	}
	return "unreached"
}

// fieldWord is a field's cell. first is the field of the first kernel that has it.
func (c *Column) fieldWord(f, first *answer.Field) string {
	switch {
	case f == nil:
		return "-"
	case f.Found == "":
		return "unknown"
	}
	word, at := f.Found, ""
	switch {
	case f.Offset != nil:
		at = fmt.Sprintf(" +%d", *f.Offset)
		if f.Bit != 0 {
			at += fmt.Sprintf(".%d", f.Bit)
		}
	case f.Value != nil:
		at = fmt.Sprintf(" =%d", *f.Value)
	}
	if f.Found == answer.Present && first != nil {
		switch {
		case f.Offset != nil && first.Offset != nil && (*f.Offset != *first.Offset || f.Bit != first.Bit):
			word = "moved"
		case f.Value != nil && first.Value != nil && *f.Value != *first.Value:
			word = "another value"
		}
	}
	word += at
	if f.Found == answer.Absent || f.Found == answer.OtherType && !f.Relocated {
		if harmless := c.harmless(f); harmless != "" {
			word += ", " + harmless
		}
	}
	return word
}

// fields writes a row for each field that CO-RE's records name, and a column for each kernel.
func (t *Table) fields(w io.Writer) error {
	keys := t.fieldNames()
	if len(keys) == 0 {
		return nil
	}
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprint(tw, "\nfield")
	for _, c := range t.Columns {
		fmt.Fprint(tw, "\t", printable.Name(c.Kernel))
	}
	fmt.Fprintln(tw)
	var notes strings.Builder
	for _, k := range keys {
		var first *answer.Field
		cells := ""
		for i := range t.Columns {
			f := t.Columns[i].field(k)
			if first == nil && f != nil && f.Found == answer.Present {
				first = f
			}
			cells += "\t" + t.Columns[i].fieldWord(f, first)
		}
		name := printable.Name(k.name)
		if k.kind != "field" {
			name = k.kind + " " + name
		}
		fmt.Fprintln(tw, name+cells)
		t.fieldNotes(&notes, k, name)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, notes.String())
	return err
}

// fieldNotes prints where the programs expect a field, and with which type, and what each kernel has.
func (t *Table) fieldNotes(b *strings.Builder, k fieldKey, name string) {
	var lines []string
	var wants *answer.Field
	for i := range t.Columns {
		c := &t.Columns[i]
		f := c.field(k)
		switch {
		case f == nil:
		case f.Found == answer.OtherType:
			lines = append(lines, fmt.Sprintf("  %s: it is of type %s, and the object has %s", printable.Name(c.Kernel), printable.Name(f.Type), printable.Name(f.Wanted)))
		case f.Found == answer.Absent && c.harmless(f) == "":
			wants = f
		case f.Error != "":
			lines = append(lines, "  "+printable.Name(c.Kernel)+": "+printable.Name(f.Error))
		}
	}
	if wants != nil && wants.Place != nil && wants.Place.File != "" {
		lines = append(lines, fmt.Sprintf("  %s:%d: %s (%s)", printable.Name(path.Base(wants.Place.File)), wants.Place.Line,
			printable.Name(wants.Place.Text), printable.Name(strings.Join(wants.Programs, ", "))))
	}
	if len(lines) > 0 {
		fmt.Fprintf(b, "\n%s\n%s\n", name, strings.Join(lines, "\n"))
	}
}
