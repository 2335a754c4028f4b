package session

import (
	"kprobelab/internal/callsyntax"
	"kprobelab/watch"
	"kprobelab/x86"
)

// Watch sets a watchpoint for every CPU and task.
func (l *Session) Watch(place watch.Place, h Handlers) (*Planted, error) {
	w, err := l.Watchpoint(place)
	if err != nil {
		return nil, err
	}
	place.Len = w.Len
	p := &Planted{Probe: callsyntax.Probe{Symbol: place.Symbol, Addr: place.Addr, Offset: place.Offset}, Watched: w, Place: place, At: w.Addr}
	p.Name = l.name(p)
	w.Handler = func(_ *watch.Watchpoint, hit *watch.Hit, regs *x86.PtRegs) {
		if h.Watched != nil {
			h.Watched(p, hit, regs)
		}
	}
	return p, l.Watches.Add(w)
}
