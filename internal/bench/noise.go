package bench

import (
	"fmt"
	"slices"
	"strings"
)

// A figure can be compared if it comes from at least quietRounds rounds, and half of them are no
// further apart than noisyPart of their median. Below quietNS the clock alone makes such a
// difference.
const (
	quietRounds = 10
	noisyPart   = 0.2
	quietNS     = 3
)

// noisy: half of the rounds are too far apart.
func noisy(ns, low, high float64) bool {
	return high-low > max(noisyPart*ns, quietNS)
}

// Noise lists the reasons why a report's figures cannot be compared with another report's.
type Noise struct {
	// TooFewRounds: they do not show how far apart they are.
	TooFewRounds bool `json:"too_few_rounds,omitempty"`
	// Paths are the noisy ones, as PATH (HANDLER) or PATH (HANDLER, OTHERS others).
	Paths []string `json:"paths,omitempty"`
	// Floor: one of the floor's own costs is noisy, and so are the ratios to it.
	Floor bool `json:"floor,omitempty"`
}

// Noise is nil where all figures can be compared.
func (r *Report) Noise() *Noise {
	n := Noise{TooFewRounds: r.Rounds < quietRounds}
	for _, p := range r.Paths {
		if !noisy(p.NS, p.Low, p.High) {
			continue
		}
		others := ""
		if p.Others > 0 {
			others = fmt.Sprintf(", %d others", p.Others)
		}
		n.Paths = append(n.Paths, fmt.Sprintf("%s (%s%s)", p.Path, p.Handler, others))
	}
	for _, f := range r.Floor {
		n.Floor = n.Floor || noisy(f.NS, f.Low, f.High)
	}
	if len(r.Paths) == 0 || !n.TooFewRounds && n.Paths == nil && !n.Floor {
		return nil
	}
	return &n
}

// String is the noise in a sentence.
func (n *Noise) String() string {
	if n.TooFewRounds {
		return fmt.Sprintf("too few rounds to compare: it takes %d to see how far apart they are", quietRounds)
	}
	what := n.Paths
	if n.Floor {
		what = append(slices.Clone(what), "the floor")
	}
	return fmt.Sprintf("too noisy to compare: %s: half of the rounds are more than a fifth of the median apart; measure again with nothing else running",
		strings.Join(what, ", "))
}
