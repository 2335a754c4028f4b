package bench

import (
	"math"
	"slices"
)

// Result is the cost of a path. Times are nanoseconds of the host per hit, probed minus unprobed.
type Result struct {
	Path      string `json:"path"`
	Describes string `json:"describes"`
	Profile   string `json:"profile"`
	// Handler is the kind of handler: HandlerGo, or HandlerNone if none runs.
	Handler string `json:"handler"`
	// Others is the number of probes elsewhere.
	Others int `json:"others"`
	// NS is the median of the rounds, Low and High their quartiles.
	NS   float64 `json:"ns"`
	Low  float64 `json:"low_ns"`
	High float64 `json:"high_ns"`
	// Floor is the machine's time for the same traps, call-outs and guest instructions without any
	// work in them, and Ratio is NS divided by it; 0 for none.
	Floor float64 `json:"floor_ns"`
	Ratio float64 `json:"ratio,omitempty"`
	// Parts were counted. Instructions is the number of additional instructions of the guest, and
	// Crossings the number of calls into Go.
	Parts
	Instructions float64 `json:"instructions"`
	Crossings    float64 `json:"crossings"`
	// Allocs is Go's heap allocations per hit.
	Allocs float64 `json:"allocs"`
	// Documented and Modelled are microseconds; 0 for none.
	Documented float64 `json:"documented_us,omitempty"`
	Modelled   float64 `json:"modelled_us"`
	// Samples are the rounds.
	Samples []float64 `json:"-"`
}

// Floor is one of the machine's own costs, in nanoseconds.
type Floor struct {
	Name      string  `json:"name"`
	Describes string  `json:"describes"`
	NS        float64 `json:"ns"`
	Low       float64 `json:"low_ns"`
	High      float64 `json:"high_ns"`
}

// Report is a whole run.
type Report struct {
	// Target is the measured target, nil for the guest kernel's functions.
	Target *Measured `json:"target,omitempty"`
	Paths  []Result  `json:"paths"`
	// Skipped are the paths that a hit on the target cannot take.
	Skipped []Skipped `json:"skipped,omitempty"`
	Floor   []Floor   `json:"floor"`
	// Rounds were made, each of Hits hits on every path.
	Rounds int `json:"rounds"`
	Hits   int `json:"hits"`
	// Hardware is the processor of the modelled figures.
	Hardware Hardware `json:"hardware"`
}

// Find returns the first result of a path, the result with handlers in Go if there is one; nil if
// the path was not measured.
func (r *Report) Find(path string) *Result {
	for i := range r.Paths {
		if r.Paths[i].Path == path {
			return &r.Paths[i]
		}
	}
	return nil
}

// Ratios are k, b and o as multiples of o, measured and documented; ok is
// false where one of them was not measured.
func (r *Report) Ratios() (measured, documented [3]float64, ok bool) {
	o := r.Find("o")
	if o == nil || o.NS <= 0 {
		return measured, documented, false
	}
	for i, name := range []string{"k", "b", "o"} {
		p := r.Find(name)
		if p == nil {
			return measured, documented, false
		}
		measured[i], documented[i] = p.NS/o.NS, p.Documented/o.Documented
	}
	return measured, documented, true
}

// quartiles are the first, the median and the third of the samples.
func quartiles(samples []float64) (low, median, high float64) {
	s := slices.Sorted(slices.Values(samples))
	if len(s) == 0 {
		return 0, 0, 0
	}
	at := func(q float64) float64 {
		x := q * float64(len(s)-1)
		i := int(x)
		if i+1 == len(s) {
			return s[i]
		}
		return s[i] + (x-float64(i))*(s[i+1]-s[i])
	}
	return at(0.25), at(0.5), at(0.75)
}

// round2 and round4 leave as many decimals; adding 0 makes -0 a 0.
func round2(v float64) float64 { return math.Round(v*100)/100 + 0 }
func round4(v float64) float64 { return math.Round(v*1e4)/1e4 + 0 }
