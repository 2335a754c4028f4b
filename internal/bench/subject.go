package bench

import (
	"errors"
	"fmt"

	"kprobelab"
	"kprobelab/kprobes"
	"kprobelab/x86"
)

// subject is a measured operation: calls with a planted probe, and without it.
type subject struct {
	*stand
	name string
	// run makes n calls, plant plants the probe, remove takes it away.
	run    func(n int) error
	plant  func() error
	remove func() error
	// hits returns the number of hits so far; nil if nothing counts them.
	hits func() uint64
	// per is the number of hits of a call, at least 1.
	per int
	// chunk is the number of calls that are counted over (settleChunk).
	chunk int
}

// site is the place in a kernel where a path is measured.
type site struct {
	// fn is the function that the loop calls with words; at is the probed address.
	fn, at x86.Addr
	words  []uint64
	// system, where set, is called in place of fn.
	system *systemCall
	// neighbour is the next function, and outer a function whose probe's handler runs the loop.
	neighbour, outer x86.Addr
	// per is the number of hits of a call.
	per int
}

// guestSite returns the path's site in the guest kernel.
func (p *Path) guestSite(s *stand) *site {
	fn := s.symbol(p.place)
	return &site{
		fn: fn, at: fn + x86.Addr(p.offset), words: guestWords, per: 1,
		neighbour: s.symbol(placeNextDoor), outer: s.symbol(placeOuter),
	}
}

// subject makes a path's subject. Several share a stand: one thing is planted at
// a time.
func (p *Path) subject(l *kprobelab.Lab, at *site) (*subject, error) {
	s := &stand{Lab: l}
	sub := &subject{stand: s, name: p.Name, per: at.per, run: s.calls}
	if err := errors.Join(s.aimAt(at), p.arrange(sub, at)); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	if err := sub.settleChunk(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	return sub, nil
}

func (p *Path) arrange(s *subject, place *site) error {
	at := place.at
	h := &handlers{}
	kp, rp := &h.kp, &h.rp
	s.hits = func() uint64 { return h.hits }
	s.plant = func() error { return s.plantKprobe(kp, at, 0) }
	s.remove = func() error { return s.unplant(kp, nil) }
	switch p.kind {
	case plainKprobe, withPost:
		h.countPre()
		if p.kind == withPost {
			h.post()
		}
	case returning:
		h.countReturn()
		s.plant = func() error { return s.plantReturn(rp, at) }
		s.remove = func() error { return s.unplant(nil, rp) }
	case both:
		h.pre()
		h.countReturn()
		s.plant = func() error { return errors.Join(s.plantKprobe(kp, at, 0), s.plantReturn(rp, at)) }
		s.remove = func() error { return s.unplant(kp, rp) }
	case disabled:
		s.hits = nil
		s.plant = func() error { return s.plantKprobe(kp, at, kprobes.FlagDisabled) }
	case nextDoor:
		s.hits, at, s.per = nil, place.neighbour, 1
	case missedReturn:
		s.missReturns(rp, at)
	case nestedMiss:
		s.hits = func() uint64 { return kp.Nmissed }
		return s.nest(place.outer)
	}
	return nil
}

func (s *subject) plantKprobe(p *kprobes.Kprobe, at x86.Addr, flags kprobes.Flags) error {
	p.SymbolName, p.Addr, p.Flags = "", at, flags
	if err := s.Kprobes.RegisterKprobe(p); err != nil {
		return err
	}
	return s.Settle()
}

func (s *subject) plantReturn(p *kprobes.Kretprobe, at x86.Addr) error {
	p.KP.SymbolName, p.KP.Addr, p.KP.Flags = "", at, 0
	if err := s.Kprobes.RegisterKretprobe(p); err != nil {
		return err
	}
	return s.Settle()
}

func (s *subject) unplant(p *kprobes.Kprobe, rp *kprobes.Kretprobe) error {
	s.Kprobes.UnregisterKprobe(p)
	s.Kprobes.UnregisterKretprobe(rp)
	return errors.Join(s.Settle(), s.Kprobes.Err())
}

// missReturns calls the probed function with the loop as its argument. It calls the loop, which
// calls the function again, and each of those returns is missed: the outer call has the only
// instance.
func (s *subject) missReturns(rp *kprobes.Kretprobe, at x86.Addr) {
	rp.MaxActive = 1
	s.hits = func() uint64 { return rp.Nmissed }
	s.run = func(n int) error {
		_, err := s.Machine.CallAddr(at, uint64(s.loop), uint64(n))
		return err
	}
	s.plant = func() error { return s.plantReturn(rp, at) }
	s.remove = func() error { return s.unplant(nil, rp) }
}

// nest plants a probe elsewhere, for good, whose handler runs the loop.
func (s *subject) nest(outer x86.Addr) error {
	n := 0
	var inner error
	s.run = func(hits int) error {
		n = hits
		_, err := s.Machine.CallAddr(outer)
		return errors.Join(err, inner)
	}
	return s.Kprobes.RegisterKprobe(&kprobes.Kprobe{
		Addr:       outer,
		PreHandler: func(*kprobes.Kprobe, *x86.PtRegs) int { inner = s.calls(n); return 0 },
	})
}
