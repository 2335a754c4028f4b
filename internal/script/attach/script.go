package attach

import (
	"kprobelab/internal/script"
	"kprobelab/internal/script/host"
)

// Script is a script after its language's front end, ready to run.
type Script struct {
	Program *script.Program
	Probes  []*host.Probe
	Words   Words
	// Backwards: kprobes and kretprobes are planted from the last to the first, so that the first one of several
	// at one place runs first.
	Backwards bool
	// First is called before the first handler runs, with the time in nanoseconds; nil does nothing.
	First func(t *script.Thread, now uint64)
	// Last is called after everything else; nil does nothing.
	Last func(*script.Thread)
}

// Words holds the messages of a language's tool. A message of "" is not printed.
type Words interface {
	// Task returns the name of the task that runs handlers if there is no guest.
	Task() string
	// Unplanted returns the message for a probe that cannot be planted; fatal ends the script.
	Unplanted(p *host.Probe, err error) (line string, fatal bool)
	// Failed returns the message for a handler that has ended with an error, TooManySkipped for more
	// skipped hits than are allowed, Ended for the errors and the skipped hits at the end.
	Failed(err error) string
	TooManySkipped() string
	Ended(errs, skipped uint64) string
}
