package archive

import (
	"bytes"
	"maps"
	"slices"
	"strings"
)

// packInlined makes the section "inlined": for each function its name and the names of
// the functions that contain its code, a zero after each, and one more at the end.
func packInlined(callers map[string][]string) (out []byte) {
	for _, name := range slices.Sorted(maps.Keys(callers)) {
		for _, s := range append([]string{name}, callers[name]...) {
			out = append(append(out, s...), 0)
		}
		out = append(out, 0)
	}
	return out
}

func readInlined(b []byte) map[string][]string {
	callers := map[string][]string{}
	for len(b) > 0 {
		one, rest, _ := bytes.Cut(b, []byte{0, 0})
		list := strings.Split(string(one), "\x00")
		callers[list[0]] = list[1:]
		b = rest
	}
	return callers
}
