package attach

import (
	"kprobelab/internal/script"
	"kprobelab/internal/script/host"
)

// Script is what a language has made of a script.
type Script struct {
	Program *script.Program
	Probes  []*host.Probe
	Words   Words
	// Backwards says that of kprobes and kretprobes the last is planted first: of several at one place the first
	// then runs first.
	Backwards bool
	// First is called before the first handler runs, with the time, nil for nothing.
	First func(t *script.Thread, now uint64)
	// Last runs after everything else, nil for nothing.
	Last func(*script.Thread)
}

// Words are what a language's tool says, and how it takes errors.
type Words interface {
	// Task is the name of the task that runs handlers where there is no guest.
	Task() string
	// Unplanted is said of a probe that cannot be planted; fatal ends the script.
	Unplanted(p *host.Probe, err error) (line string, fatal bool)
	// Failed is said of a handler that has ended with an error, TooManySkipped of hits that ran
	// no handler, Ended of both at the end; "" is for nothing to say.
	Failed(err error) string
	TooManySkipped() string
	Ended(errs, skipped uint64) string
}
