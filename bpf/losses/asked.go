package losses

import (
	"kprobelab/booted"
	"kprobelab/internal/outfile"
)

// Asked says what is asked about the BPF programs of a run; nil is nothing. It is for several kernels at once.
type Asked struct {
	// Losses: the ledger is shown.
	Losses bool
	// MaxCost, if not 0, is the most instructions that a run of a program may take.
	MaxCost uint64
	// Coverage, if not "", names a file that gets the counts of the programs' lines, of all kernels so far, as lcov's trace file.
	Coverage string

	lines Lines
}

// Any reports whether anything is asked.
func (a *Asked) Any() bool { return a != nil && (a.Losses || a.MaxCost > 0 || a.Coverage != "") }

// Start begins to observe a kernel; the watch is nil if nothing is asked.
func (a *Asked) Start(k *booted.Kernel) (*Watch, error) {
	switch {
	case !a.Any():
		return nil, nil
	case a.Coverage == "":
		return Start(k, nil)
	}
	return Start(k, &a.lines)
}

// Save writes the file of Coverage, if one is asked for.
func (a *Asked) Save() error {
	if a == nil || a.Coverage == "" {
		return nil
	}
	return a.lines.Save(func(b []byte) error { return outfile.Write(a.Coverage, b) })
}
