package bpftrace

import (
	"errors"
	"fmt"

	"kprobelab/internal/bounded"
	"kprobelab/internal/script"
	"kprobelab/internal/script/host"
)

// Words are bpftrace's messages while a script runs.
type Words struct{}

// Task implements attach.Words.
func (Words) Task() string { return "bpftrace" }

// Unplanted implements attach.Words: the script ends, but not for one of many that a pattern fits.
func (Words) Unplanted(p *host.Probe, err error) (line string, fatal bool) {
	if p.Optional {
		return fmt.Sprintf("WARNING: could not attach probe %s, skipping.", p.Point), false
	}
	return fmt.Sprintf("ERROR: Error attaching probe: %s: %v", p.Point, err), true
}

// Failed implements attach.Words.
func (Words) Failed(err error) string {
	var e *script.Error
	if errors.As(err, &e) && e.Message == "MAXACTION exceeded" {
		return fmt.Sprintf("%s: ERROR: a handler has executed more than %d statements; a loop has to end", e.Near, bounded.BpftraceActions)
	}
	return "ERROR: " + err.Error()
}

// TooManySkipped implements attach.Words: bpftrace does not tell.
func (Words) TooManySkipped() string { return "" }

// Ended implements attach.Words.
func (Words) Ended(_, skipped uint64) string {
	if skipped == 0 {
		return ""
	}
	return fmt.Sprintf("WARNING: %d hits ran no handler", skipped)
}
