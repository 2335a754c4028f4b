package kprobelab

import (
	"fmt"

	"kprobelab/errno"
	"kprobelab/watch"
	"kprobelab/x86"
)

// Watchpoint is a watchpoint that is set.
type Watchpoint struct {
	*watch.Watchpoint
	in *watch.Set
}

// Close takes the watchpoint away; of one that is gone already it does nothing.
func (w *Watchpoint) Close() error { return w.in.Remove(w.Watchpoint) }

// Watch sets a watchpoint at "SYM[+OFF][:LEN][:ACCESS]" or "mem:ADDR[/LEN][:ACCESS]", for
// every CPU and task; ACCESS is r, w, rw or x. The error says what is wrong with the text, or
// has the errno.
func (l *Lab) Watch(place string, handler watch.Handler) (*Watchpoint, error) {
	p, err := watch.Parse(place)
	if err != nil {
		return nil, err
	}
	w, err := l.Watchpoint(p)
	if err != nil {
		return nil, err
	}
	w.Handler = handler
	if err := l.Watches.Add(w); err != nil {
		return nil, err
	}
	return &Watchpoint{w, l.Watches}, nil
}

// Watchpoint makes the watchpoint of a place, for every CPU and task; l.Watches.Add sets it. The error is of
// a symbol that is not there. A length or accesses that no watchpoint can have are refused when it is set.
func (l *Lab) Watchpoint(p watch.Place) (*watch.Watchpoint, error) {
	w := p.Watchpoint()
	if p.Symbol != "" {
		at, err := l.watched(p.Symbol)
		if err != nil {
			return nil, err
		}
		w.Addr += at
	}
	return w, nil
}

// watched is the address of a symbol.
func (l *Lab) watched(name string) (x86.Addr, error) {
	list := l.Image.Lookup(name)
	switch {
	case len(list) == 0:
		return 0, fmt.Errorf("%s: %w: the image has no such symbol", name, errno.ENOENT)
	case len(list) > 1:
		return 0, fmt.Errorf("%s: %w: there are %d symbols of this name", name, errno.EADDRNOTAVAIL, len(list))
	}
	at := list[0].Addr
	if area, ok := l.Image.PerCPU(); ok && at >= area.Start && uint64(at-area.Start) < area.Size {
		if n := l.Machine.NumCPU(); n > 1 {
			return 0, fmt.Errorf("%s: %w: each of the %d CPUs has one of its own; give an address", name, errno.EINVAL, n)
		}
		return l.Machine.GSBase(0) + at, nil
	}
	return at, nil
}
