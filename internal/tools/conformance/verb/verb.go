// Package verb is the main function of the tools that have several verbs. It must not know what they do.
package verb

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

// Main runs the verb that the command line names, and ends the process: with 1 for differ, 2 for a wrong use, 3 for another error.
func Main(tool, usage string, differ error, verbs map[string]func(args []string) error) {
	err := fmt.Errorf("usage: %s %s: %w", tool, usage, flag.ErrHelp)
	if len(os.Args) > 1 && verbs[os.Args[1]] != nil {
		err = verbs[os.Args[1]](os.Args[2:])
	}
	switch {
	case err == nil:
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	case errors.Is(err, differ):
		fmt.Fprintf(os.Stderr, "%s: %v\n", tool, err)
		os.Exit(1)
	default:
		fmt.Fprintf(os.Stderr, "%s: %v\n", tool, err)
		os.Exit(3)
	}
}
