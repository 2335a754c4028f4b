package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// printTotal writes the closing line, alone on its line, that CI looks for.
func printTotal(w io.Writer, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := total(f)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", n[passed], n[failed], n[skipped])
	return nil
}

// total counts each test once, over all the runs in the tally.
func total(r io.Reader) (map[result]int, error) {
	last := map[string]result{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		res, key, ok := strings.Cut(lines.Text(), "\t")
		if !ok {
			return nil, fmt.Errorf("a tally line without a tab: %q", lines.Text())
		}
		last[key] = worse(last[key], result(res))
	}
	n := map[result]int{}
	for _, res := range last {
		n[res]++
	}
	return n, lines.Err()
}

// worse joins two runs of a test: a failure in any run stands, a skip only
// where no run let the test through.
func worse(a, b result) result {
	switch {
	case a == failed || b == failed:
		return failed
	case a == passed || b == passed:
		return passed
	}
	return skipped
}
