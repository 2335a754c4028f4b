package filter

import (
	"fmt"

	"kprobelab/errno"
)

// Error is a text that is no filter for these fields.
type Error struct {
	// Text is the filter's.
	Text string
	// Msg is the kernel's message; empty if the kernel prints only "Error".
	Msg string
	// Pos is the error's position in the text, in bytes, as error_log points at it.
	Pos int
	// Errno is the error number of the write.
	Errno errno.Errno
}

// Prefix is the text that the kernel puts before Msg in error_log: "event filter parse error:
// error: Field not found".
const Prefix = "event filter parse error"

// NoDetail is the text in error_log of an Error without a Msg, at position 0.
const NoDetail = "Error"

// Error implements error.
func (e *Error) Error() string {
	if e.Msg == "" {
		return fmt.Sprintf("filter %q: not a filter: %v", e.Text, e.Errno)
	}
	return fmt.Sprintf("filter %q: %s at position %d", e.Text, e.Msg, e.Pos)
}

// Unwrap gives the errno.
func (e *Error) Unwrap() error { return e.Errno }

// ReadBack returns the content of the filter file after the failed write: the text, a caret under
// the place, and the message.
func (e *Error) ReadBack() string {
	if e.Msg == "" {
		return fmt.Sprintf("%s\nError: (0)\n", e.Text)
	}
	pos := min(e.Pos, len(e.Text))
	if pos > 0 {
		pos++ // the kernel's positions count from 0 and its columns from 1
	}
	return fmt.Sprintf("%s\n%*s\nparse_error: %s\n", e.Text, pos, "^", e.Msg)
}

// The messages, in the kernel's words.
const (
	msgInvalidOp      = "Invalid operator"
	msgTooManyOpen    = "Too many '('"
	msgTooManyClose   = "Too few '('"
	msgMissingQuote   = "Missing matching quote"
	msgOperandTooLong = "Operand too long"
	msgExpectString   = "Expecting string field"
	msgExpectDigit    = "Expecting numeric field"
	msgIllegalFieldOp = "Illegal operation for field type"
	msgFieldNotFound  = "Field not found"
	msgIllegalInt     = "Illegal integer value"
	msgTooManyPreds   = "Too many terms in predicate expression"
	msgInvalidValue   = "Invalid value (did you forget quotes)?"
	msgNoFilter       = "No filter found"
	msgMeaningless    = "Meaningless filter expression"
	msgNoFunction     = "Function not found"
	msgNoTasks        = "Nothing tells which task runs"
	msgBraceOpen      = "Missing '{'"
	msgBraceClose     = "Missing '}'"
	msgCPUList        = "Invalid cpulist"
	msgGroup          = "Couldn't find or set field in one of a subsystem's events"
)

// ForGroup is the error as an event shows it whose filter was set through its
// group's filter file.
func (e *Error) ForGroup() *Error {
	return &Error{Text: e.Text, Msg: msgGroup, Errno: e.Errno}
}

// GroupText is the content of a group's filter file.
const GroupText = "### global filter ###\n" +
	"# Use this to set filters for multiple events.\n" +
	"# Only events with the given fields will be affected.\n" +
	"# If no events are modified, an error message will be displayed here"
