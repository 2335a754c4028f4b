package bench

import (
	"errors"

	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/profile"
)

// Target is a place of a kernel image, to be measured in place of the guest
// kernel's own functions.
type Target struct {
	// Open opens the image, with these modules loaded after its own.
	Open func(modules ...string) (*kimage.Image, error)
	// Place is the probed place.
	Place probepoint.Request
	// Call is made over and over, as in "gcd(12, 18)", the syntax of `kprobelab run`. Its buffers
	// keep the last call's content. Empty, in the guest kernel only: the function at Place, with 0
	// and 5.
	Call string
}

// ErrUnmeasurable is the class of a target whose call makes no hit, or not as
// many each time, or is missing.
var ErrUnmeasurable = errors.New("it cannot be measured")

// Measured is a target, as it was found.
type Measured struct {
	// Image is the image's name, Release the kernel's release in its banner ("" without a banner),
	// and Profile the name of the rules.
	Image   string `json:"image"`
	Release string `json:"release,omitempty"`
	Profile string `json:"profile"`
	Place   string `json:"place"`
	Call    string `json:"call"`
	// HitsPerCall is the number of times that a call reaches the place.
	HitsPerCall int `json:"hits_per_call"`
}

// Skipped is a path that a hit on the target cannot take.
type Skipped struct {
	Path string `json:"path"`
	// Reason is a sentence.
	Reason string `json:"reason"`
}

// rules are the kernel's rules, with PREEMPTION as the path needs it: off for
// boosting, and on for a probe that is to trap and step. Other paths take the
// kernel as it is.
func (p *Path) rules(c *profile.Config) *profile.Config {
	own := *c
	if p.kind == disabled || p.kind == nextDoor || p.optimize || p.how == probepoint.Ftrace {
		return &own
	}
	own.Preemption = p.how != probepoint.Boosted
	return &own
}

// rulesName names rules that were made of a profile's.
func rulesName(c, of *profile.Config) string {
	switch {
	case !c.Preemption:
		return c.Name + " (no PREEMPTION)"
	case !of.Preemption:
		return c.Name + "+PREEMPTION"
	}
	return c.Name
}
