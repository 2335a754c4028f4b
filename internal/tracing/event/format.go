package event

import (
	"fmt"
	"strings"
)

// Format describes an event's records: it is the content of the event's format file.
type Format struct {
	// Name is the event's, Group its group's (the kernel calls it system).
	Name, Group string
	// ID is the record's common_type.
	ID int
	// Common and Fields are the fields in the order of their offsets.
	Common, Fields []Field
	// Print is the text after "print fmt: ".
	Print string
	// BareArrays leaves the number of elements out of an array's declaration:
	// "u8 name[]" (6.1 and later; before, "u8 name[4]").
	BareArrays bool
	// Filters describes the filter language for the records; nil for the language of 4.4.
	Filters *Filters
}

// Field finds a field by name, the common ones included.
func (f *Format) Field(name string) (*Field, bool) {
	for _, list := range [][]Field{f.Fields, f.Common} {
		for i := range list {
			if list[i].Name == name {
				return &list[i], true
			}
		}
	}
	return nil, false
}

// All are the fields that a filter can name: the common ones, then the event's.
func (f *Format) All() []Field {
	return append(append([]Field(nil), f.Common...), f.Fields...)
}

// String is the text of the format file (docs/spec 9.11).
func (f *Format) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\nID: %d\nformat:\n", f.Name, f.ID)
	for i := range f.Common {
		f.line(&b, &f.Common[i])
	}
	b.WriteByte('\n')
	for i := range f.Fields {
		f.line(&b, &f.Fields[i])
	}
	fmt.Fprintf(&b, "\nprint fmt: %s\n", f.Print)
	return b.String()
}

func (f *Format) line(b *strings.Builder, d *Field) {
	signed := 0
	if d.Signed {
		signed = 1
	}
	fmt.Fprintf(b, "\tfield:%s;\toffset:%d;\tsize:%d;\tsigned:%d;\n", f.declare(d), d.Offset, d.Size, signed)
}

// declare puts an array's bounds after the name; the bounds of a __data_loc stay with the type.
func (f *Format) declare(d *Field) string {
	base, bounds, array := strings.Cut(d.Type, "[")
	if !array || strings.HasPrefix(d.Type, "__data_loc") {
		return d.Type + " " + d.Name
	}
	if f.BareArrays {
		bounds = "]"
	}
	return base + " " + d.Name + "[" + bounds
}
