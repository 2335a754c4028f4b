package vmcore

import (
	"errors"
	"fmt"

	"kprobelab/internal/printable"
	"kprobelab/x86"
)

// ErrFormat is wrapped by every FormatError: the file is not a readable dump.
var ErrFormat = errors.New("not a usable memory dump")

// FormatError says what is wrong with a file, in one line.
type FormatError struct {
	// File is the name of the file.
	File string
	// Want says what was expected and what there is instead.
	Want string
}

// Error is one line: the file, and what was expected.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: %s", printable.Name(e.File), e.Want)
}

// Unwrap lets errors.Is find ErrFormat.
func (e *FormatError) Unwrap() error { return ErrFormat }

// bad makes a FormatError without its file, which open adds.
func bad(format string, args ...any) error {
	return &FormatError{Want: fmt.Sprintf(format, args...)}
}

// inFile adds the file's name to a FormatError that has none.
func inFile(err error, name string) error {
	var e *FormatError
	if errors.As(err, &e) {
		if e.File == "" {
			e.File = name
		}
		return e
	}
	return fmt.Errorf("%s: %w", printable.Name(name), err)
}

// FilteredError is a read of a page that the machine had, but that was left out
// when the dump was made.
type FilteredError struct {
	// Phys is the physical address of the page.
	Phys uint64
	// Level is makedumpfile's dump level, which tells the kinds of pages that were left out;
	// LevelUnknown in an ELF file, which does not note it.
	Level int
}

// LevelUnknown is the level of a dump that does not say why pages are missing: each kind may be.
const LevelUnknown = -1

// Error names the page.
func (e *FilteredError) Error() string {
	level := fmt.Sprintf("makedumpfile's dump level %d", e.Level)
	if e.Level == LevelUnknown {
		level = "an ELF file does not say why"
	}
	return fmt.Sprintf("the page at physical address %#x was left out of the dump (%s); makedumpfile -c -d 1 leaves out nothing but zeros", e.Phys, level)
}

// AbsentError is a read at an address at which the machine has no memory, by the dump.
type AbsentError struct {
	// Phys is the physical address.
	Phys uint64
}

// Error names the address.
func (e *AbsentError) Error() string {
	return fmt.Sprintf("the dump has no memory at physical address %#x", e.Phys)
}

// NotMappedError is a virtual address that the page tables do not map.
type NotMappedError struct {
	Addr x86.Addr
	// Level is the level of the page table whose entry is missing, 1 for the
	// lowest; 0 for an address that is not canonical.
	Level int
}

// Error names the address and the level.
func (e *NotMappedError) Error() string {
	if e.Level == 0 {
		return fmt.Sprintf("%#x is not a canonical address", uint64(e.Addr))
	}
	return fmt.Sprintf("%#x is not mapped: its entry in the page table of level %d is empty", uint64(e.Addr), e.Level)
}
