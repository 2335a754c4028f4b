package losses

import (
	"fmt"
	"io"
	"strings"

	"kprobelab/kprobes/pool"
)

// Write writes the ledger for people: each stage with its losses below it, a task and its stack for each.
func (l *Ledger) Write(to io.Writer) error {
	var b strings.Builder
	for i := range l.Programs {
		if i > 0 {
			b.WriteString("\n")
		}
		l.Programs[i].write(&b, l.Instructions)
	}
	if len(l.Programs) == 0 {
		b.WriteString("no program was attached to a probe\n")
	}
	for i := range l.Pools {
		b.WriteString("\n")
		l.Pools[i].Write(&b)
	}
	for _, n := range l.Notes {
		fmt.Fprintf(&b, "\nnote: %s\n", n)
	}
	_, err := io.WriteString(to, b.String())
	return err
}

func (p *Program) write(b *strings.Builder, all uint64) {
	fmt.Fprintf(b, "%s (program %d), %s of %s\n", p.Name, p.ID, p.Kind, p.Probe)
	for i := range p.Stages {
		s := &p.Stages[i]
		if i >= wanted && p.Stages[wanted].N != nil && *p.Stages[wanted].N == 0 {
			continue // it gives no records
		}
		if s.N == nil {
			fmt.Fprintf(b, "  %12s  %s: %s\n", "?", s.Name, s.Why)
		} else {
			fmt.Fprintf(b, "  %12d  %s\n", *s.N, s.Name)
		}
		for _, loss := range s.Lost {
			fmt.Fprintf(b, "  %12d    %s\n", -int64(loss.N), loss.Cause)
			if i == ran && loss.Cause == RingFull || loss.Cause == PerfFull && i == ran {
				continue // the records say where
			}
			pool.WritePlaces(b, loss.In)
		}
	}
	if p.Cost.Runs > 0 {
		fmt.Fprintf(b, "  instructions of a run: %.1f on average, %d to %d, of %d runs without an interrupt, which are %.2f %% of the guest's %d\n",
			p.Cost.Mean(), p.Cost.Least, p.Cost.Most, p.Cost.Runs, 100*float64(p.Cost.Instructions)/float64(max(all, 1)), all)
	}
	if p.Missed != nil {
		fmt.Fprintf(b, "  the kernel's own count of missed hits: %d\n", *p.Missed)
	}
}
