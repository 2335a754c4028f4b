package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// event is a line of go test -json ("go doc test2json"). Build output has an
// ImportPath in place of a Package.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

// result is the result of a test, in the words of go test -json.
type result string

const (
	passed  result = "pass"
	failed  result = "fail"
	skipped result = "skip"
)

// test is one test, subtest, example or fuzz seed, or a package (no Test) that
// failed outside of its tests.
type test struct {
	result  result
	output  []string
	seconds float64 // of its last run
	parent  bool    // it has subtests, which count in its place
	subFail bool
}

type summary struct {
	tests map[string]*test // "package.Test/sub"
}

func newSummary() *summary { return &summary{tests: map[string]*test{}} }

// read digests go test -json from r and prints a line to w as each package ends.
func (s *summary) read(r io.Reader, w io.Writer) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(w, lines.Text()) // not an event: the go command speaking
			continue
		}
		s.add(e, w)
	}
	return lines.Err()
}

func (s *summary) add(e event, w io.Writer) {
	switch e.Action {
	case "build-output":
		fmt.Fprint(w, e.Output)
	case "output":
		t := s.test(e)
		t.output = append(t.output, e.Output)
	case "pass", "fail", "skip":
		s.end(e, w)
	}
}

// end records the end of a test or of a package.
func (s *summary) end(e event, w io.Writer) {
	t := s.test(e)
	// A package may run a test more than once, as with -count or on each engine.
	t.result = worse(outcome{result: t.result}, outcome{result: result(e.Action)}).result
	t.seconds = e.Elapsed
	if e.Test != "" {
		// A subtest's name may have slashes of its own, so that what is before
		// the last one need not be a test.
		for parent, ok := parentOf(e.Test); ok; parent, ok = parentOf(parent) {
			p := s.test(event{Package: e.Package, Test: parent})
			p.parent = true
			p.subFail = p.subFail || e.Action == "fail"
		}
		return
	}
	if e.Action == "skip" {
		return // no test files: no news
	}
	fmt.Fprintf(w, "%-4s  %-32s %6.1fs\n", map[string]string{"pass": "ok", "fail": "FAIL"}[e.Action], e.Package, e.Elapsed)
}

func (s *summary) test(e event) *test {
	key := e.Package + "." + e.Test
	t := s.tests[key]
	if t == nil {
		t = &test{}
		s.tests[key] = t
	}
	return t
}

func parentOf(name string) (string, bool) {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return "", false
	}
	return name[:i], true
}

// counted lists the tests that count: those without subtests, a parent that
// failed although its subtests did not, and a package that failed outside of any
// test.
func (s *summary) counted() map[string]result {
	inTests := map[string]bool{} // packages whose failure a test accounts for
	out := map[string]result{}
	for key, t := range s.tests {
		pkg, name := split(key)
		if name == "" || t.result == "" || t.parent && (t.result != failed || t.subFail) {
			continue
		}
		out[key] = t.result
		if t.result == failed {
			inTests[pkg] = true
		}
	}
	for key, t := range s.tests {
		if pkg, name := split(key); name == "" && t.result == failed && !inTests[pkg] {
			out[key] = failed
		}
	}
	return out
}

// split takes "example.com/pkg.Test/sub" apart. A test's name has no dot before its
// first slash, and a package's name may have them anywhere but at its end.
func split(key string) (pkg, name string) {
	i := testDot.FindStringIndex(key)
	if i == nil {
		return strings.TrimSuffix(key, "."), ""
	}
	return key[:i[0]], key[i[0]+1:]
}

var testDot = regexp.MustCompile(`\.(Test|Example|Fuzz|Benchmark)`)

func (s *summary) failed() bool {
	for _, t := range s.tests {
		if t.result == failed {
			return true
		}
	}
	return false
}

// printFailures says what failed, with its output.
func (s *summary) printFailures(w io.Writer) {
	counted := s.counted()
	for _, key := range slices.Sorted(maps.Keys(counted)) {
		if counted[key] == failed {
			fmt.Fprintf(w, "--- FAIL: %s\n%s", key, strings.Join(s.tests[key].output, ""))
		}
	}
}

// printLongest names the n tests that took longest, their subtests included.
func (s *summary) printLongest(w io.Writer, n int) {
	var keys []string
	for key := range s.tests {
		if _, name := split(key); name != "" && !strings.Contains(name, "/") {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int {
		return cmp.Or(cmp.Compare(s.tests[b].seconds, s.tests[a].seconds), cmp.Compare(a, b))
	})
	for _, key := range keys[:min(n, len(keys))] {
		fmt.Fprintf(w, "%7.1f s  %s\n", s.tests[key].seconds, key)
	}
}

// reason is the text that t.Skip printed, without its file and line.
func reason(output []string) string {
	for _, line := range output {
		line = strings.TrimSpace(line)
		if m := skipLine.FindStringSubmatch(line); m != nil {
			return m[1]
		}
	}
	return "no reason given"
}

var skipLine = regexp.MustCompile(`^\S+\.go:\d+: (.*)`)

// tally writes a line for each test that counts: result, name, and the reason
// of a skip.
func (s *summary) tally(w io.Writer) error {
	counted := s.counted()
	for _, key := range slices.Sorted(maps.Keys(counted)) {
		why := ""
		if counted[key] == skipped {
			why = reason(s.tests[key].output)
		}
		if _, err := fmt.Fprintf(w, "%s\t%s\t%s\n", counted[key], key, why); err != nil {
			return err
		}
	}
	return nil
}
