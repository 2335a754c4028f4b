package run

import (
	"errors"
	"fmt"
	"strings"

	"kprobelab/booted"
	"kprobelab/bpf/losses"
	"kprobelab/internal/outfile"
)

// Lost accounts for the calls that the BPF programs of a tool probe.
type Lost struct{ Ledger *losses.Ledger }

func (Lost) event() {}

// ErrCost: a program takes more instructions than MaxCost allows.
var ErrCost = errors.New("a program takes more instructions than --max-cost allows")

// watchLosses begins to count what the programs lose, if that is asked for; nil without.
func (r *runner) watchLosses(h *HostProgram, k *booted.Kernel) (*losses.Watch, error) {
	if !h.Losses && h.MaxCost == 0 && h.Coverage == nil {
		return nil, nil
	}
	w, err := losses.Start(k, h.Coverage)
	if err != nil {
		return nil, refused(OneLine(err))
	}
	return w, nil
}

// lost ends the watch, and gives the ledger out. The error is ErrCost's.
func (r *runner) lost(h *HostProgram, w *losses.Watch) error {
	if w == nil {
		return nil
	}
	l := w.End()
	if h.Losses {
		r.put(Lost{l})
	}
	err := refusedCost(l, h.MaxCost)
	if h.CoverageFile != "" {
		if failed := h.Coverage.Save(func(b []byte) error { return outfile.Write(h.CoverageFile, b) }); failed != nil {
			err = unusable(OneLine(errors.Join(err, failed)))
		}
	}
	return err
}

// refusedCost is the error of a program with a run of more instructions than most; 0 allows all.
func refusedCost(l *losses.Ledger, most uint64) error {
	var said []string
	for i := range l.Programs {
		if p := &l.Programs[i]; most > 0 && p.Cost.Most > most {
			said = append(said, fmt.Sprintf("%s at %s takes up to %d", p.Name, p.Probe, p.Cost.Most))
		}
	}
	if len(said) == 0 {
		return nil
	}
	return refused(fmt.Errorf("%w, %d: %s", ErrCost, most, strings.Join(said, ", ")))
}
