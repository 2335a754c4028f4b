package losses

import (
	"errors"
	"fmt"
	"strings"
)

// Cost is the number of guest instructions from the first instruction of a program to its return, helpers included, interrupts
// not. Runs are the ones that no interrupt and no switch of tasks came into.
type Cost struct {
	Runs         uint64 `json:"runs"`
	Instructions uint64 `json:"instructions"`
	Least        uint64 `json:"least"`
	Most         uint64 `json:"most"`
}

// Mean is the mean of a run, 0 without one.
func (c *Cost) Mean() float64 {
	if c.Runs == 0 {
		return 0
	}
	return float64(c.Instructions) / float64(c.Runs)
}

func (c *Cost) add(n uint64) {
	if c.Runs == 0 || n < c.Least {
		c.Least = n
	}
	c.Most = max(c.Most, n)
	c.Runs++
	c.Instructions += n
}

// ErrCost: a program takes more instructions than is allowed.
var ErrCost = errors.New("a program takes more instructions than --max-cost allows")

// CheckCost is ErrCost's error if a run of a program took more instructions than most; 0 allows all.
func (l *Ledger) CheckCost(most uint64) error {
	if most == 0 {
		return nil
	}
	var said []string
	for i := range l.Programs {
		p := &l.Programs[i]
		s := p.Stage(Ran)
		switch {
		case p.Cost.Most > most:
			said = append(said, fmt.Sprintf("%s at %s takes up to %d", p.Name, p.Probe, p.Cost.Most))
		case p.Cost.Runs == 0 && s != nil && s.N != nil && *s.N > 0:
			said = append(said, fmt.Sprintf("of %s at %s it is not known: an interrupt came into each of %d runs", p.Name, p.Probe, *s.N))
		}
	}
	if len(said) == 0 {
		return nil
	}
	return fmt.Errorf("%w, %d: %s", ErrCost, most, strings.Join(said, ", "))
}
