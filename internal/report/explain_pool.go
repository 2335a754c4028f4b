package report

import (
	"fmt"

	"kprobelab/profile"
)

// ReturnPool is the pool of return instances of a kretprobe that names no maxactive.
type ReturnPool struct {
	// Rule is the kernel's formula, Sizes what it gives.
	Rule  string     `json:"rule"`
	Sizes []PoolSize `json:"sizes"`
}

// PoolSize is the size of a pool on a machine with so many possible CPUs.
type PoolSize struct {
	CPUs      int `json:"cpus"`
	MaxActive int `json:"maxactive"`
}

// machines are numbers of CPUs for which an explanation has the size.
var machines = []int{1, 4, 16, 64}

func returnPool(c *profile.Config) *ReturnPool {
	p := &ReturnPool{Rule: c.MaxActiveRule()}
	for _, n := range machines {
		p.Sizes = append(p.Sizes, PoolSize{n, c.MaxActive(n)})
	}
	return p
}

// pool writes what a return probe at a function's entry has.
func (w *explanationWriter) pool() {
	p := w.e.ReturnPool
	if p == nil {
		return
	}
	fmt.Fprintf(w, "  a kretprobe without a maxactive has %s return instances:", p.Rule)
	for i, s := range p.Sizes {
		sep := ","
		if i == 0 {
			sep = ""
		}
		fmt.Fprintf(w, "%s %d on %s", sep, s.MaxActive, Counted(s.CPUs, "CPU"))
	}
	fmt.Fprint(w, "\n  a call that finds none left runs without the probe, and only nmissed counts it (run, exec --losses: the smallest maxactive that loses none)\n")
}
