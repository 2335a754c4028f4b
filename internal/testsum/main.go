// Command testsum runs go test and says in few lines what came of it: one line
// for each package, the output of what failed, why tests were skipped, and how
// many passed.
//
// It must not know the project's packages: everything after the flags goes to
// go test as it stands.
//
//	testsum [-tally FILE] -- ARGUMENTS OF GO TEST
//	testsum -total FILE
//
// Several runs may share a tally: one over the whole tree, one with the race
// detector, one without cgo. With -total, a test counts as failed when any run
// failed it, as skipped when no run let it through, and else as passed.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
)

func main() {
	tally := flag.String("tally", "", "append every test's result to `FILE`")
	total := flag.String("total", "", "print the closing line of the results in `FILE`")
	flag.Parse()
	if err := run(*tally, *total, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
}

func run(tally, total string, args []string) error {
	if total != "" {
		return printTotal(os.Stdout, total)
	}
	s, runErr := goTest(args)
	s.print(os.Stdout)
	if tally != "" {
		if err := s.append(tally); err != nil {
			return err
		}
	}
	if runErr != nil && !s.failed() {
		// go test can fail before any test does, e.g. on an unknown flag.
		return runErr
	}
	if s.failed() {
		os.Exit(1)
	}
	return nil
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
