package container

import (
	"bytes"
	"fmt"
)

// Sizes of an ELF's headers (System V ABI, "Object Files").
const (
	ELFHeader  = 64
	ELFProgram = 56
	ELFSection = 64

	elfNobits = 8
)

// IsELF reports an ELF file.
func IsELF(b []byte) bool { return bytes.HasPrefix(b, []byte("\x7fELF")) }

// Error says what is wrong with a file, and where.
type Error struct {
	// Offset is the place in the file, or in the data that was unpacked from it.
	Offset int64
	// Want says what was expected and what there is instead.
	Want string
}

// Error implements error.
func (e *Error) Error() string { return e.Want }

func bad(offset int64, format string, args ...any) error {
	return &Error{offset, fmt.Sprintf(format, args...)}
}
