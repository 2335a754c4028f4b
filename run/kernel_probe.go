package run

import (
	"kprobelab/internal/session"
)

// probeOf describes a planted probe.
func probeOf(p *session.Planted) *Probe {
	return &Probe{Kind: p.Kind(), Text: p.String(), Name: p.Name, Addr: &p.At, Watched: p.Watched, Hits: p.Hits, Missed: &p.Missed, Pool: p.Pool}
}

// unplaced leaves the address out.
func (p *Probe) unplaced() *Probe {
	p.Addr = nil
	return p
}

func where(at session.Where) Where { return Where{CPU: at.CPU, Task: at.Task, Now: at.Now} }
