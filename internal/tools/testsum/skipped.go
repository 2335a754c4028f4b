package main

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// printSkipped reads a tally and writes, by package, which tests every run skipped
// for a reason that matches.
func printSkipped(w io.Writer, tally io.Reader, why *regexp.Regexp) error {
	tests, err := join(tally)
	if err != nil {
		return err
	}
	names := map[string][]string{} // of top-level tests, by package
	for _, key := range slices.Sorted(maps.Keys(tests)) {
		t := tests[key]
		pkg, name := split(key)
		if t.result != skipped || name == "" || !why.MatchString(t.why) {
			continue
		}
		top, _, _ := strings.Cut(name, "/")
		if !slices.Contains(names[pkg], top) {
			names[pkg] = append(names[pkg], top)
		}
	}
	for _, pkg := range slices.Sorted(maps.Keys(names)) {
		if _, err := fmt.Fprintf(w, "%s\t^(%s)$\n", pkg, strings.Join(names[pkg], "|")); err != nil {
			return err
		}
	}
	return nil
}
