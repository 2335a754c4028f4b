package stap

import (
	"errors"
	"fmt"

	"kprobelab/errno"
)

// Words are stap's messages while a script runs.
type Words struct{}

// Task implements attach.Words.
func (Words) Task() string { return "stapio" }

// Unplanted implements attach.Words: the other probes run.
func (Words) Unplanted(p *Probe, err error) (line string, fatal bool) {
	if w := p.Watched; w != nil {
		if errors.Is(err, errno.ENOENT) {
			return fmt.Sprintf("WARNING: Probe %s registration skipped: invalid symbol %s", p.Point, w.Symbol), false
		}
		n := errno.Errno(0)
		errors.As(err, &n)
		return fmt.Sprintf("WARNING: Hwbkpt probe %s: registration error %d, addr %#x, name %s: %v", p.Point, -int(n), w.Addr, w.Symbol, err), false
	}
	return fmt.Sprintf("WARNING: probe %s (address %#x) registration error: %v", p.Point, p.Addr, err), false
}

// Failed implements attach.Words.
func (Words) Failed(err error) string {
	if err.Error() == "abort" {
		return ""
	}
	return "ERROR: " + err.Error()
}

// TooManySkipped implements attach.Words.
func (Words) TooManySkipped() string {
	return "ERROR: Skipped too many probes, check MAXSKIPPED or try again with stap -t for more details."
}

// Ended implements attach.Words.
func (Words) Ended(errs, skipped uint64) string {
	if errs == 0 && skipped == 0 {
		return ""
	}
	return fmt.Sprintf("WARNING: Number of errors: %d, skipped probes: %d", errs, skipped)
}
