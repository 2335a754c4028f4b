package asked

import (
	"fmt"
	"regexp"
	"strings"
)

// What belongs to a boot: times, hashed pointers, numbers of events.
var (
	stamp   = regexp.MustCompile(`(?m)^\[ *[0-9.]*\]`)
	pointer = regexp.MustCompile(`0x(\(____ptrval____\)|[0-9a-f]{16}\b)`)
	number  = regexp.MustCompile(`(?m)^ID: \d+`)
)

func normal(s string) string {
	return number.ReplaceAllString(pointer.ReplaceAllString(stamp.ReplaceAllString(s, "[TS]"), "0xPTR"), "ID: N")
}

// Difference is an answer that is not the kernel's.
type Difference struct {
	// Before is the last write before it: an answer that was read depends on it.
	Before, Op   Op
	Theirs, Ours Answer
}

// String describes it in a few lines.
func (d *Difference) String() string {
	return fmt.Sprintf("%s %s %q after %q\n  kernel: errno %d %s\n  ours:   errno %d %s",
		d.Op.Do, d.Op.File, d.Op.Text, d.Before.Text, d.Theirs.Errno, indent(d.Theirs.Text), d.Ours.Errno, indent(d.Ours.Text))
}

func indent(s string) string { return strings.ReplaceAll(strings.TrimSuffix(s, "\n"), "\n", "\n    ") }

// Compare lists the answers that differ.
func Compare(ops []Op, theirs, ours []Answer) []Difference {
	var list []Difference
	var before Op
	for i, o := range ops {
		if o.Text != "" {
			before = o
		}
		if !Same(theirs[i], ours[i]) {
			list = append(list, Difference{before, o, theirs[i], ours[i]})
		}
	}
	return list
}

// Same reports whether two answers are the same, but for what belongs to a boot.
func Same(a, b Answer) bool { return a.Errno == b.Errno && normal(a.Text) == normal(b.Text) }
