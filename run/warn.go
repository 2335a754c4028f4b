package run

import (
	"fmt"
	"io"
	"strings"
)

// Warn writes what a person should know at once: the harm of a probe that the kernel accepts, after the word warning, and the
// kernel's message about a probe that it refuses. It writes nothing of other events.
func Warn(w io.Writer, e Event, warning string) {
	switch e := e.(type) {
	case Harmful:
		fmt.Fprintf(w, "%s %s: %s (%s): %s\n", warning, e.Probe, e.Hazard, e.Effect, e.Says)
	case Planted:
		if p := &e.Probe; p.Hazard != "" {
			fmt.Fprintf(w, "%s %s: %s: %s\n", warning, strings.ReplaceAll(p.Definition, "\n", "; "), p.Hazard, p.Hazard.Means())
		}
	case RefusedProbe:
		if e.Log != "" {
			fmt.Fprintln(w, e.Log)
		}
	}
}
