package probepoint

import (
	"errors"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes/rule"
	"kprobelab/kprobes/slot"
	"kprobelab/profile"
	"kprobelab/x86"
)

// How is the way in which a probe at a point runs the probed instruction.
type How int

// The ways.
const (
	// Stepped: the copy in the slot is executed, and the trap that follows (an
	// int3, or the trap flag's) returns to kprobes.
	Stepped How = iota
	// Boosted: the copy is executed, and the jump that follows returns to the
	// probed function; kprobes is not entered again.
	Boosted
	// Emulated: kprobes makes the instruction's changes of the registers.
	Emulated
	// Ftrace: the function tracer calls the probe; there is no slot.
	Ftrace
)

// String is the word that reports print.
func (h How) String() string {
	return [...]string{"stepped", "boosted", "emulated", "ftrace"}[h]
}

// Means is the way in words that follow its name.
func (h How) Means() string {
	return [...]string{
		"a copy runs in the slot, and a trap after it returns",
		"a copy runs in the slot, and a jump after it returns",
		"kprobes does to the registers what the instruction would",
		"the function tracer calls the probe; there is no int3 and no slot",
	}[h]
}

// Placement describes the execution of an accepted probe.
type Placement struct {
	How How
	// Slot is the instruction out of line; it is zero for Ftrace.
	Slot slot.Slot
}

// Place checks a point and builds its slot at slotAddr, as registration does if no probe is at the
// address yet (checks 4 to 19). hasPost is true if the probe has a post_handler, which prevents
// boosting. Errors are *Refusal.
func Place(v kimage.View, p *Point, slotAddr x86.Addr, hasPost bool, c *profile.Config) (Placement, error) {
	return place(v, p, nil, slotAddr, hasPost, c)
}

// PlaceStep is Place for a point that a walk over its own symbol has reached
// (kimage.Walker.Function); it gives the same answer without another walk. A
// point that resolution has moved past an ENDBR is no longer at its step: use
// Place.
func PlaceStep(v kimage.View, p *Point, s *kimage.Step, slotAddr x86.Addr, hasPost bool, c *profile.Config) (Placement, error) {
	return place(v, p, s, slotAddr, hasPost, c)
}

func place(v kimage.View, p *Point, s *kimage.Step, slotAddr x86.Addr, hasPost bool, c *profile.Config) (Placement, error) {
	if err := check(v, p, s, c); err != nil {
		return Placement{}, err
	}
	if p.Ftrace {
		return Placement{How: Ftrace}, nil
	}
	out, err := BuildSlot(v, p, slotAddr, hasPost, c)
	if err != nil {
		return Placement{}, err
	}
	return Placement{How: HowOf(&out, c), Slot: out}, nil
}

// BuildSlot makes the out-of-line copy of the instruction at a checked point
// (check 19). Errors are *Refusal with the slot package's rule.
func BuildSlot(v kimage.View, p *Point, slotAddr x86.Addr, hasPost bool, c *profile.Config) (slot.Slot, error) {
	s, err := slot.Build(v, p.Addr, slotAddr, hasPost, c)
	if err != nil {
		return slot.Slot{}, slotRefusal(err, p)
	}
	return s, nil
}

func slotRefusal(err error, p *Point) error {
	r := RefuseAs(errno.Of(err), rule.Slot, p.Addr, p.String())
	r.Cause = err
	var e *slot.Error
	if errors.As(err, &e) {
		r.Rule = e.Rule
		r.Why += ": " + e.Rule.Why()
	}
	return r
}

// HowOf returns the way in which the CPU gets past a probed instruction whose slot is s.
func HowOf(s *slot.Slot, c *profile.Config) How {
	switch {
	case s.Boosted && !c.Preemption:
		return Boosted
	case s.Emulation.Kind != slot.EmulateNone:
		return Emulated
	}
	return Stepped
}
