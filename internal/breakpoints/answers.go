package breakpoints

import (
	"fmt"
	"strconv"
	"strings"

	"kprobelab/watch/registers"
)

// Read reads what the program has printed, a line an answer.
func Read(text string) ([]int64, error) {
	var list []int64
	for line := range strings.Lines(text) {
		v, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			return list, fmt.Errorf("answer %d: %q is no number", len(list), line)
		}
		list = append(list, v)
	}
	return list, nil
}

// Differences are the questions whose answers differ from the rules', in words.
func Differences(k registers.Kernel, list []Ask, got []int64) (diffs []string) {
	for i, want := range Answers(k, list) {
		switch {
		case i >= len(got):
			return append(diffs, fmt.Sprintf("%d: %s: no answer", i, list[i]))
		case got[i] != want:
			diffs = append(diffs, fmt.Sprintf("%d: %s: the kernel %d, the rules %d", i, list[i], got[i], want))
		}
	}
	return diffs
}
