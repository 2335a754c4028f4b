package bpftrace

import (
	"fmt"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
)

// pos is a place of the script. Lines and columns are counted from 1; a column is one byte.
type pos struct{ line, col int }

func (p pos) after(o pos) bool { return p.line > o.line || p.line == o.line && p.col > o.col }

// span is from a place to the one after its end.
type span struct{ from, to pos }

func (s span) with(o span) span { return span{s.from, o.to} }

// Problem is an error in a script, or a warning.
type Problem struct {
	Warning bool
	Message string
	// Hint suggests a correction, "" for none.
	Hint string
	at   span
	// hinting: the problem is a hint with a place of its own.
	hinting bool
	// free: the message has no place.
	free bool
}

// Problems has the errors and the warnings of a pass. It is an error itself.
type Problems struct {
	list     []*Problem
	warnings []*Problem
	file     *file
}

func (p *Problems) Error() string { return p.Text() }

// Text returns the messages as bpftrace prints them, warnings first.
func (p *Problems) Text() string {
	// bpftrace prints a message without a place at once, and all others at the end of the pass.
	list := slices.Clone(p.list)
	slices.SortStableFunc(list, func(a, b *Problem) int {
		switch {
		case a.free == b.free:
			return 0
		case a.free:
			return -1
		}
		return 1
	})
	return p.text(p.warnings) + p.text(list)
}

func (p *Problems) text(list []*Problem) string {
	var b strings.Builder
	for i, one := range list {
		if b.Len() > bounded.ProblemText {
			fmt.Fprintf(&b, "ERROR: %d messages more are not shown\n", len(list)-i)
			break
		}
		kind := "ERROR"
		if one.Warning {
			kind = "WARNING"
		}
		if one.hinting {
			kind = "HINT"
		}
		switch {
		case one.free:
			fmt.Fprintf(&b, "%s: %s\n", kind, one.Message)
		case one.at.from.line < one.at.to.line:
			fmt.Fprintf(&b, "%s:%d-%d: %s: %s\n", p.file.name, one.at.from.line, one.at.to.line, kind, one.Message)
		default:
			fmt.Fprintf(&b, "%s:%d:%d-%d: %s: %s\n", p.file.name, one.at.from.line, one.at.from.col, one.at.to.col, kind, one.Message)
			p.file.mark(&b, one.at)
		}
		if one.Hint != "" {
			fmt.Fprintf(&b, "HINT: %s\n", one.Hint)
		}
	}
	return b.String()
}

// file is a script's text.
type file struct {
	name, text string
	lines      []string
}

func newFile(name, text string) *file {
	return &file{name, text, strings.Split(text, "\n")}
}

// mark prints the line of a place, and below it a mark under the place.
func (f *file) mark(b *strings.Builder, at span) {
	if at.from.line > len(f.lines) {
		return
	}
	line := f.lines[at.from.line-1]
	const tab = "    "
	b.WriteString(strings.ReplaceAll(line, "\t", tab) + "\n")
	for i := range min(len(line), at.to.col-1) {
		mark := " "
		if i >= at.from.col-1 {
			mark = "~"
		}
		if line[i] == '\t' {
			mark = strings.Repeat(mark, len(tab))
		}
		b.WriteString(mark)
	}
	b.WriteByte('\n')
}

// failed is the panic value with which a pass ends at an error after which it cannot go on.
type failed struct{}
