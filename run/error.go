package run

import (
	"errors"
	"fmt"
	"strings"

	"kprobelab/booted"
	"kprobelab/errno"
)

// Kind says what an Error is about.
type Kind int

// The kinds of errors.
const (
	// Refused: the kernel refused, or a call failed.
	Refused Kind = iota + 1
	// Misused: the plan says what cannot be.
	Misused
	// Unusable: an image or a file is not what it should be.
	Unusable
)

// Error is an error of a run, with its kind.
type Error struct {
	Kind Kind
	Err  error
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without its kind.
func (e *Error) Unwrap() error { return e.Err }

func refused(err error) error { return &Error{Refused, err} }

func unusable(err error) error { return &Error{Unusable, err} }

func misused(format string, args ...any) error { return &Error{Misused, fmt.Errorf(format, args...)} }

// programError is the error of a program that could not be run on a booted kernel, or not to its end. A dump that no
// program can run on is the dump's fault; an errno already says the program's name.
func programError(dump, program string, err error) error {
	n := errno.Errno(0)
	switch {
	case errors.Is(err, booted.ErrNoInit):
		return unusable(fmt.Errorf("%s: %w", dump, err))
	case program == "", errors.As(err, &n), errors.Is(err, booted.ErrSupervisor):
		return refused(OneLine(err))
	default:
		return refused(fmt.Errorf("%s: %w", program, OneLine(err)))
	}
}

// ExitError is the end of a program with another exit code than 0. All else went well.
type ExitError struct {
	Program string
	// Code is the exit code, of a program that a signal ended 128 and the signal's number.
	Code int
	// Signal is the signal that ended the program, 0 for none, and IP where.
	Signal int
	IP     uint64
}

// Error implements error.
func (e *ExitError) Error() string {
	if e.Signal != 0 {
		return fmt.Sprintf("%s was killed by signal %d at %#x", e.Program, e.Signal, e.IP)
	}
	return fmt.Sprintf("%s ended with exit code %d", e.Program, e.Code)
}

// joined is several errors whose texts stand on one line.
type joined struct{ error }

func (j joined) Error() string { return strings.ReplaceAll(j.error.Error(), "\n", "; ") }
func (j joined) Unwrap() error { return j.error }

// OneLine joins what several errors say.
func OneLine(err error) error { return joined{err} }
