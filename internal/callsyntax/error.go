package callsyntax

import (
	"fmt"
	"strings"
)

// Error says what is wrong with a text, and where.
type Error struct {
	// Text is the whole text that was read.
	Text string
	// Col is the place in bytes from 1; one past the text is its end.
	Col int
	// Msg is one sentence without the place.
	Msg string
}

// Error is the sentence with its column.
func (e *Error) Error() string { return fmt.Sprintf("column %d: %s", e.Col, e.Msg) }

// maxCaret is how many characters of the text stand on each side of the place:
// a longer line would wrap, and the caret would point nowhere.
const maxCaret = 50

// Caret is the text on one line and under it a caret at the place. A long text
// is cut on both sides, with dots for what is left out.
func (e *Error) Caret() string {
	line := strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, e.Text)
	col := min(max(e.Col-1, 0), len(line))
	before, after := []rune(line[:col]), []rune(line[col:])
	if len(before) > maxCaret {
		before = append([]rune("…"), before[len(before)-maxCaret:]...)
	}
	if len(after) > maxCaret {
		after = append(after[:maxCaret:maxCaret], '…')
	}
	return string(before) + string(after) + "\n" + strings.Repeat(" ", len(before)) + "^"
}
