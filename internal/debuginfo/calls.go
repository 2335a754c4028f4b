package debuginfo

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"kprobelab/internal/source"
)

// WriteCalls says for how many of its call sites a probe on a function fires.
func WriteCalls(w io.Writer, f *source.File, function string) error {
	calls, err := f.Calls(function)
	if err != nil {
		return err
	}
	seen, all := len(calls.Direct), len(calls.Direct)+len(calls.Inlined)
	fmt.Fprintf(w, "a probe on %s fires for %d of %d call sites", function, seen, all)
	if len(calls.Inlined) == 0 {
		fmt.Fprintln(w)
	} else {
		fmt.Fprintf(w, "; %d inlined: %s\n", len(calls.Inlined), callers(calls.Inlined))
	}
	if seen > 0 {
		fmt.Fprintf(w, "  seen: calls in %s\n", callers(calls.Direct))
	}
	return nil
}

// maxCallers is how many functions are named.
const maxCallers = 12

// callers are the functions that have calls, each once, with how many.
func callers(list []source.Call) string {
	count := map[string]int{}
	var names []string
	for _, c := range list {
		if count[c.Caller]++; count[c.Caller] == 1 {
			names = append(names, c.Caller)
		}
	}
	slices.Sort(names)
	more := ""
	if len(names) > maxCallers {
		more = fmt.Sprintf(" and %d more functions", len(names)-maxCallers)
		names = names[:maxCallers]
	}
	for i, n := range names {
		if count[n] > 1 {
			names[i] = fmt.Sprintf("%s (%d)", n, count[n])
		}
	}
	return strings.Join(names, ", ") + more
}
