package run

import (
	"errors"

	"kprobelab/booted"
	"kprobelab/bpf/losses"
)

// Lost accounts for the calls that the BPF programs of a tool probe.
type Lost struct{ Ledger *losses.Ledger }

func (Lost) event() {}

// watchLosses begins to count what the programs lose, if that is asked for; nil without.
func (r *runner) watchLosses(h *HostProgram, k *booted.Kernel) (*losses.Watch, error) {
	w, err := h.Asked.Start(k)
	if err != nil {
		return nil, refused(OneLine(err))
	}
	return w, nil
}

// lost ends the watch, and gives the ledger out. It fails if a cost is above the limit, or if the file of lines cannot be written.
func (r *runner) lost(h *HostProgram, w *losses.Watch) (err error) {
	if w == nil {
		return nil
	}
	l := w.End()
	if h.Asked.Losses {
		r.put(Lost{l})
	}
	if costs := l.CheckCost(h.Asked.MaxCost); costs != nil {
		err = refused(costs)
	}
	if failed := h.Asked.Save(); failed != nil {
		err = unusable(OneLine(errors.Join(err, failed)))
	}
	return err
}
