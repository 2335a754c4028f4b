// Command shortened finds the tests that go test -short shortens or skips, and those that need a dump of a
// booted kernel: the tests that make check runs after make test. It prints two lines: a pattern for go test -run,
// and the folders of their packages.
//
// It reads the source, and runs nothing. A test is found if a function, a method or a variable of its package's test
// files that it names, or that they name in turn, calls testing.Short or a function of integration/dumps, or names a
// folder of scripts with the condition [short]. Names stand for what they may mean: too many tests are found, not too few.
//
// It must not know the project's tests by name.
//
//	shortened FOLDER...
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	var names, folders []string
	for _, folder := range os.Args[1:] {
		found, err := tests(folder)
		if err != nil {
			fmt.Fprintln(os.Stderr, "shortened:", err)
			os.Exit(1)
		}
		if len(found) > 0 {
			names, folders = append(names, found...), append(folders, folder)
		}
	}
	fmt.Printf("^(%s)$\n%s\n", strings.Join(slices.Sorted(maps.Keys(set(names))), "|"), strings.Join(folders, " "))
}

func set(names []string) map[string]bool {
	s := map[string]bool{}
	for _, name := range names {
		s[name] = true
	}
	return s
}
