package main

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// outcome is the result of one test over several runs.
type outcome struct {
	result result
	why    string // of a skip
}

// printTotal reads a tally and writes why tests were skipped in every run that
// had them, then the closing line, alone on its line, that CI looks for.
func printTotal(w io.Writer, tally io.Reader) error {
	tests, err := join(tally)
	if err != nil {
		return err
	}
	n := map[result]int{}
	skips := map[string][]string{} // names by reason
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		t := tests[name]
		n[t.result]++
		if t.result == skipped {
			skips[t.why] = append(skips[t.why], name)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(skips)) {
		names := skips[why]
		more := ""
		if len(names) > 1 {
			more = fmt.Sprintf(" and %d more", len(names)-1)
		}
		fmt.Fprintf(w, "skipped: %s (%s%s)\n", why, names[0], more)
	}
	_, err = fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", n[passed], n[failed], n[skipped])
	return err
}

// join reads a tally and makes one outcome of each test's runs.
func join(tally io.Reader) (map[string]outcome, error) {
	tests := map[string]outcome{}
	lines := bufio.NewScanner(tally)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		f := strings.SplitN(lines.Text(), "\t", 3)
		if len(f) != 3 {
			return nil, fmt.Errorf("a tally line without its two tabs: %q", lines.Text())
		}
		tests[f[1]] = worse(tests[f[1]], outcome{result(f[0]), f[2]})
	}
	for name := range tests {
		forgetParents(tests, name)
	}
	return tests, lines.Err()
}

// forgetParents leaves out the parents of a test: a run that skipped one, or
// found no subtests in it, counted it in their place.
func forgetParents(tests map[string]outcome, name string) {
	for i := strings.LastIndexByte(name, '/'); i >= 0; i = strings.LastIndexByte(name[:i], '/') {
		if tests[name[:i]].result != failed {
			delete(tests, name[:i])
		}
	}
}

// worse joins two runs of a test: a failure in any run stands, a skip only
// where every run skipped it. The first run's reason stays.
func worse(a, b outcome) outcome {
	for _, r := range []result{failed, passed, skipped} {
		switch r {
		case a.result:
			return a
		case b.result:
			return b
		}
	}
	return b
}
