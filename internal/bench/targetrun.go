package bench

import (
	"errors"
	"fmt"
	"slices"

	"kprobelab"
	"kprobelab/internal/session"
	"kprobelab/kimage"
	"kprobelab/kprobes"
	"kprobelab/kprobes/probepoint"
	"kprobelab/x86"
)

// target is a Target under way.
type target struct {
	*Target
	// images are the opened ones, by the number of other probes.
	images map[int]*kimage.Image
	// at is the probed address, in function.
	at       x86.Addr
	function kimage.Symbol
	measured Measured
	// system: the call is a system call.
	system bool
}

// trialBudget is the number of instructions that a call may execute in its trial. A longer call
// would be measured for hours.
const trialBudget = 10_000_000

// aim opens the target, and counts the hits of a call of it.
func (r *run) aim(o *Target) (*target, error) {
	t := &target{Target: o, images: map[int]*kimage.Image{}}
	img, err := t.image(0)
	if err != nil {
		return nil, err
	}
	t.measured = Measured{Image: img.Name(), Release: img.Fact("release").Value, Profile: img.Profile().Name, Place: o.Place.String(), Call: o.Call}
	s, err := t.spec(0).make()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	hits := new(uint64)
	if err := t.probe(s, count(hits)); err != nil {
		return nil, err
	}
	place, err := t.site(s, 0)
	if err != nil {
		return nil, err
	}
	if err := s.aimAt(place); err != nil {
		return nil, err
	}
	t.measured.HitsPerCall, err = t.try(s, hits)
	return t, err
}

// probe plants a probe at the place, for trials, and remembers where that is.
func (t *target) probe(s *stand, pre kprobes.PreHandler) error {
	p := &kprobes.Kprobe{SymbolName: t.Place.Symbol, Addr: t.Place.Addr, Offset: t.Place.Offset, PreHandler: pre}
	if err := s.Kprobes.RegisterKprobe(p); err != nil {
		return err
	}
	t.at = p.Addr
	t.function, _ = s.Image.SymbolAt(p.Addr)
	return nil
}

// try makes some calls, each of which must make the same number of hits. The first call does not
// count, because one-time events come with it.
func (t *target) try(s *stand, hits *uint64) (int, error) {
	var each [4]uint64
	for i := range each {
		before := *hits
		if err := errors.Join(s.calls(1), s.Kprobes.ClearErr()); err != nil {
			return 0, fmt.Errorf("%s: %w", t.measured.Call, err)
		}
		each[i] = *hits - before
	}
	switch n := each[1]; {
	case each[2] != n || each[3] != n:
		return 0, fmt.Errorf("%s: %w: its calls make %d, %d and %d hits, and have to be alike",
			t.measured.Call, ErrUnmeasurable, n, each[2], each[3])
	case n == 0:
		return 0, fmt.Errorf("%s: %w: it does not come to %s", t.measured.Call, ErrUnmeasurable, t.measured.Place)
	default:
		return int(n), nil
	}
}

// spares is the number of fillers in addition to the other probes' fillers.
const spares = 1

// image opens the image, once for each number of other probes.
func (t *target) image(others int) (*kimage.Image, error) {
	if img := t.images[others]; img != nil {
		return img, nil
	}
	img, err := withFillers(t.Open, fillers(others)+spares)
	t.images[others] = img
	return img, err
}

// spec is a stand on the image, by the image's own rules, for trials.
func (t *target) spec(others int) *standSpec {
	return &standSpec{
		open:   func() (*kimage.Image, error) { return t.image(others) },
		others: others, budget: trialBudget,
	}
}

// site returns the target's site, on a stand with so many other probes. The call's buffers are put
// into the stand's memory.
func (t *target) site(s *stand, others int) (*site, error) {
	place := &site{at: t.at, per: t.measured.HitsPerCall, outer: s.symbol(fillerName(fillers(others)))}
	if t.Call == "" {
		if t.measured.Image != kprobelab.GuestKernel || t.function.Name == "" {
			return nil, fmt.Errorf("%s of %s: %w without a call that comes there", t.measured.Place, t.measured.Image, ErrUnmeasurable)
		}
		place.fn, place.words = t.function.Addr, guestWords
		t.measured.Call = fmt.Sprintf("%s(%d, %d)", t.function.Name, guestWords[0], guestWords[1])
		return place, nil
	}
	c, err := session.BindCall(s.Image, t.Call)
	if err != nil {
		return nil, err
	}
	words, err := session.New(s.Lab).Words(c)
	if err != nil {
		return nil, err
	}
	if c.System == "" {
		place.fn, place.words = c.Symbol.Addr, words
		return place, nil
	}
	if slices.Contains(returnTwice, c.System) {
		return nil, fmt.Errorf("%s: %w: the process that it makes would make the calls, too", t.Call, ErrUnmeasurable)
	}
	nr, _ := s.Image.SystemCall(c.System)
	place.system, t.system = &systemCall{nr, words}, true
	return place, nil
}

// returnTwice are the system calls that return in another process, too.
var returnTwice = []string{"fork", "vfork", "clone", "clone3"}

// targetSubject makes the path's on the target; the error is untaken, or a
// *probepoint.Refusal, where hits there cannot take it.
func (r *run) targetSubject(p *Path, others int) (*subject, error) {
	t := r.target
	img, err := t.image(others)
	if err != nil {
		return nil, err
	}
	spec := t.spec(others)
	spec.rules, spec.optimize, spec.budget = p.rules(img.Profile()), p.optimize, unlimited
	if why := p.barred(img, t.at, spec.rules); why != "" {
		return nil, untaken(why)
	}
	if p.kind == nestedMiss && t.system {
		return nil, untaken("a handler makes no system calls")
	}
	p.byDebug = spec.rules.Step.TrapFlag
	l, err := r.stand(standKey{preempt: spec.rules.Preemption, optimize: p.optimize, others: others}, spec)
	if err != nil {
		return nil, err
	}
	s := &stand{Lab: l}
	place, err := t.site(s, others)
	if err == nil && p.kind == nextDoor {
		place.neighbour, err = t.neighbour(s, place)
	}
	if err != nil {
		return nil, err
	}
	return p.subject(l, place)
}

// neighbours is the number of functions that are tried.
const neighbours = 100

// neighbour returns the next function after the target's that can be probed and that the call does
// not reach.
func (t *target) neighbour(s *stand, place *site) (x86.Addr, error) {
	if err := s.aimAt(place); err != nil {
		return 0, err
	}
	sub, at := &subject{stand: s}, t.function.Addr
	for range neighbours {
		next, ok := s.Image.SymbolAt(at)
		if !ok {
			break
		}
		at = next.Addr.Add(int64(next.Size))
		hits := new(uint64)
		p := &kprobes.Kprobe{PreHandler: count(hits)}
		if sub.plantKprobe(p, at, 0) != nil {
			continue
		}
		if err := errors.Join(s.calls(1), sub.unplant(p, nil)); err != nil {
			return 0, err
		}
		if *hits == 0 {
			return at, nil
		}
	}
	return 0, untaken("there is no function after it that can be probed and that the call does not come to")
}

// skip notes why hits on the target do not take a path; another error stays one.
func (r *run) skip(p *Path, err error) error {
	var why untaken
	var refused *probepoint.Refusal
	switch {
	case r.target == nil:
		return err
	case errors.As(err, &why):
		r.skipped = append(r.skipped, Skipped{p.Name, string(why)})
	case errors.As(err, &refused):
		r.skipped = append(r.skipped, Skipped{p.Name, refused.Why})
	default:
		return err
	}
	return nil
}

// profile names the rules that a path runs on.
func (r *run) profile(p *Path) string {
	if r.target == nil {
		return p.Profile()
	}
	own := r.target.images[r.o.Others[0]].Profile()
	return rulesName(p.rules(own), own)
}
