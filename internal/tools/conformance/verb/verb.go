// Package verb is the grammar of the program that compares: verbs, their options, one meaning of each exit code.
//
// It must not know what a verb does.
package verb

import (
	"errors"
	"flag"
	"fmt"
	"io"
)

var (
	// ErrDiffer says that answers differ. The verb has printed them.
	ErrDiffer = errors.New("answers differ")
	// ErrNotRun says that a kernel did not run to its end, so that it has no answers to compare.
	ErrNotRun = errors.New("a kernel did not run to its end")
)

// Verb is one comparison of the program.
type Verb struct {
	Name, Does string
	Run        func(args []string) error
}

// Differ returns err, or ErrDiffer if answers differ.
func Differ(different bool, err error) error {
	if err == nil && different {
		return ErrDiffer
	}
	return err
}

// Find returns the verb of that name.
func Find(list []Verb, name string) (Verb, error) {
	for _, v := range list {
		if v.Name == name {
			return v, nil
		}
	}
	return Verb{}, fmt.Errorf("there is no %q: %w", name, flag.ErrHelp)
}

// Parts runs the part of a verb that its first argument names.
func Parts(list []Verb, args []string) error {
	if len(args) == 0 {
		return flag.ErrHelp
	}
	v, err := Find(list, args[0])
	if err != nil {
		return err
	}
	return v.Run(args[1:])
}

// Help prints a line for each verb.
func Help(w io.Writer, list []Verb) {
	for _, v := range list {
		fmt.Fprintf(w, "  %-12s %s\n", v.Name, v.Does)
	}
}

// Code returns the exit code of a verb: 0 if nothing differs, 1 if answers differ, 77 if a kernel did not run, 2 for any other error.
func Code(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrDiffer):
		return 1
	case errors.Is(err, ErrNotRun):
		return 77
	}
	return 2
}
