package bisect

import (
	"fmt"
	"io"
	"strings"
)

// Text writes the result in sentences. subject names the question; called returns a kernel's name for people; details are
// lines about the new answer.
func (r *Result) Text(w io.Writer, subject string, called func(kernel string) string, details string) error {
	by := "the series " + Series(r.After) + " brought it"
	if r.Stable {
		by = "a stable release of " + Series(r.After) + " brought it"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s up to %s, %s from %s on: %s\n", subject, r.From, called(r.Before), r.To, called(r.After), by)
	for line := range strings.Lines(details) {
		fmt.Fprintf(&b, "    %s\n", strings.TrimSpace(line))
	}
	for _, u := range r.Unasked {
		fmt.Fprintf(&b, "between them %s could not be asked: %s\n", called(u.Kernel), u.Reason)
	}
	fmt.Fprintf(&b, "%d of %d kernels were asked\n", len(r.Asked), r.Of)
	_, err := io.WriteString(w, b.String())
	return err
}
