// Command testsum runs go test and sums up what it printed: one line for each
// package, the output of what failed, and at the end why tests were skipped and
// how many passed.
//
// It must not know the project's packages: everything after the flags goes to
// go test as it stands.
//
//	testsum [-tally FILE] [-longest N] -- ARGUMENTS OF GO TEST
//	testsum -total FILE
//	testsum -skipped PATTERN FILE
//
// Several runs may share a tally: one over the whole tree, one with the race
// detector, one without cgo; -total then closes them all. There, a test counts
// as failed when any run failed it, as skipped when every run skipped it, and
// else as passed. -skipped prints a line for each package with tests that every run
// skipped for a reason of the pattern: the package, a tab, and a pattern for go test -run.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
)

func main() {
	tally := flag.String("tally", "", "append every test's result to `FILE`")
	longest := flag.Int("longest", 0, "print the `N` tests that took longest")
	total := flag.String("total", "", "print the closing line of the results in `FILE`")
	skipped := flag.String("skipped", "", "print what the tally skipped for a reason that matches `PATTERN`")
	flag.Parse()
	if err := run(*tally, *total, *skipped, *longest, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
}

func run(tally, total, skipped string, longest int, args []string) error {
	switch {
	case total != "":
		return withFile(total, func(f io.Reader) error { return printTotal(os.Stdout, f) })
	case skipped != "":
		pattern, err := regexp.Compile(skipped)
		if err != nil {
			return err
		}
		if len(args) != 1 {
			return errors.New("-skipped takes one FILE")
		}
		return withFile(args[0], func(f io.Reader) error { return printSkipped(os.Stdout, f, pattern) })
	}
	s, err := goTest(args)
	s.printFailures(os.Stdout)
	s.printLongest(os.Stdout, longest)
	if tallyErr := record(s, tally); tallyErr != nil {
		return tallyErr
	}
	// The output of a failed test is printed already. go test can also fail
	// before any test runs, e.g. on an unknown flag.
	if s.failed() {
		os.Exit(1)
	}
	return err
}

func withFile(name string, read func(io.Reader) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(read(f), f.Close())
}

// record appends to the tally that several runs share, or closes a run that
// has none.
func record(s *summary, tally string) error {
	if tally == "" {
		var own bytes.Buffer
		if err := s.tally(&own); err != nil {
			return err
		}
		return printTotal(os.Stdout, &own)
	}
	f, err := os.OpenFile(tally, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	return errors.Join(s.tally(f), f.Close())
}

// goTest runs go test -json with args and digests what it prints.
func goTest(args []string) (*summary, error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return newSummary(), err
	}
	if err := cmd.Start(); err != nil {
		return newSummary(), fmt.Errorf("go is missing or does not run: %w", err)
	}
	s := newSummary()
	readErr := s.read(out, os.Stdout)
	if err := cmd.Wait(); err != nil {
		return s, fmt.Errorf("go test: %w", err)
	}
	return s, readErr
}
