package callsyntax

import (
	"fmt"
	"strings"
)

// Error says what is wrong with a text, and where.
type Error struct {
	// Text is the whole text that was read.
	Text string
	// Col is the place in bytes from 1; one behind the text is its end.
	Col int
	// Msg is one sentence without the place.
	Msg string
}

// Error is the sentence with its column.
func (e *Error) Error() string { return fmt.Sprintf("column %d: %s", e.Col, e.Msg) }

// Caret is the text on one line and under it a caret at the place.
func (e *Error) Caret() string {
	line := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, e.Text)
	before := []rune(line[:min(max(e.Col-1, 0), len(line))])
	return line + "\n" + strings.Repeat(" ", len(before)) + "^"
}
