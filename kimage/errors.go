package kimage

import (
	"errors"
	"fmt"

	"kprobelab/internal/printable"
)

// ErrFormat is wrapped by every FormatError: the file is damaged, or has another format.
var ErrFormat = errors.New("not a usable kernel image")

// FormatError says what is wrong with a file, in one line.
type FormatError struct {
	// File is the name of the file.
	File string
	// Offset is the place of the fault in the file (or in the data that was
	// unpacked from it), in bytes; negative if a place says nothing.
	Offset int64
	// Want says what was expected and what there is instead.
	Want string
}

// Error is one line: file, offset, what was expected.
func (e *FormatError) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("%s: %s", printable.Name(e.File), e.Want)
	}
	return fmt.Sprintf("%s: at offset %#x: %s", printable.Name(e.File), e.Offset, e.Want)
}

// Unwrap lets errors.Is find ErrFormat.
func (e *FormatError) Unwrap() error { return ErrFormat }

func badFormat(file string, offset int64, format string, args ...any) error {
	return &FormatError{File: file, Offset: offset, Want: fmt.Sprintf(format, args...)}
}
