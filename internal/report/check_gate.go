package report

import (
	"fmt"
	"slices"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/kprobes/hazard"
)

// Gate says which failures let a check succeed all the same.
type Gate struct {
	// Allow are hazards that do no harm here.
	Allow map[hazard.ID]bool `json:"allow"`
	// Waivers list what is known to fail; they are in force until a date.
	Waivers []Waiver `json:"waivers,omitempty"`
	// Since has the failures of an earlier check, which are not new; nil if there was none.
	Since *Since `json:"since,omitempty"`
}

// OpenGate reads the files of a gate; "" is no file. allow has names of hazards.
func OpenGate(allow []string, waivers, since string) (g Gate, err error) {
	if g.Allow, err = hazard.Named(allow); err != nil {
		return g, fmt.Errorf("--allow: %w", err)
	}
	if waivers != "" {
		var text []byte
		if text, err = bounded.ReadFile(waivers, bounded.Waivers); err == nil {
			g.Waivers, err = ReadWaivers(printable(waivers), text)
		}
	}
	if err == nil && since != "" {
		var text []byte
		if text, err = bounded.ReadFile(since, bounded.CheckInput); err == nil {
			if g.Since, err = ReadSince(text); err != nil {
				err = fmt.Errorf("%s: %w", since, err)
			}
		}
	}
	return g, err
}

// The faults of a cell. A hazard has its name after hazardFault.
const (
	attachFault = "attach"
	loadFault   = "load"
	hazardFault = "hazard "
)

// faults lists what is wrong in a cell. A booted kernel's answer counts more than the computed one.
func (c *Check) faults(cell *CheckCell) (list []string) {
	refused := !cell.Attaches && !cell.NotAsked
	if l := cell.Load; l != nil && !l.Unasked {
		if !l.Loads {
			list = append(list, loadFault)
		} else if l.Attaches != nil {
			refused = !*l.Attaches
		}
	}
	if refused {
		list = append(list, attachFault)
	}
	for i := range cell.Hazards {
		if f := &cell.Hazards[i]; cell.Attaches && f.Effect.Harms() && !c.Allow[f.ID] && !slices.Contains(list, hazardFault+string(f.ID)) {
			list = append(list, hazardFault+string(f.ID))
		}
	}
	return list
}

// Judge decides which cells fail. today is a date as in a waiver.
func (c *Check) Judge(g *Gate, today string) {
	c.Allow, c.Waivers = g.Allow, nil
	c.Passed, c.failed = 0, map[string]int{}
	for i := range g.Waivers {
		c.Waivers = append(c.Waivers, WaiverUse{Waiver: g.Waivers[i], Expired: g.Waivers[i].Until < today})
	}
	for i := range c.Probes {
		row := &c.Probes[i]
		for j := range row.Cells {
			cell := &row.Cells[j]
			cell.Faults, cell.Passes = c.faults(cell), ""
			waived := c.waived(row, j, len(cell.Faults) > 0)
			switch {
			case len(cell.Faults) == 0:
				continue
			case row.Optional:
				cell.Passes = "optional"
			case waived != nil:
				cell.Passes = "waived"
				cell.Why = fmt.Sprintf("until %s: %s", waived.Until, waived.Reason)
			case g.Since.knows(row, &c.Images[j], cell.Faults):
				cell.Passes = "known"
			default:
				c.failed[kindOf(cell.Faults[0])]++
				continue
			}
			c.Passed++
		}
	}
}

// kindOf is a fault without the hazard's name.
func kindOf(fault string) string {
	if strings.HasPrefix(fault, hazardFault) {
		return hazardFault
	}
	return fault
}

// fails reports whether the cell has faults that do not pass.
func (c *CheckCell) fails() bool { return len(c.Faults) > 0 && c.Passes == "" }

// has reports whether a fault of the kind is in the cell.
func (c *CheckCell) has(kind string) bool {
	return slices.ContainsFunc(c.Faults, func(f string) bool { return kindOf(f) == kind })
}

// fails counts the cells that fail.
func (c *Check) fails() (n int) {
	for _, k := range c.failed {
		n += k
	}
	return n
}

// Bad says how many probes do not load, do not attach, and do harm; nothing of what is well, or may fail.
func (c *Check) Bad() (list []string) {
	for _, of := range []struct{ kind, one, more string }{
		{loadFault, "1 program does not load", "%d programs do not load"},
		{attachFault, "1 probe does not attach", "%d probes do not attach"},
		{hazardFault, "1 probe does harm (--allow HAZARD lets it pass)", "%d probes do harm (--allow HAZARD lets them pass)"},
	} {
		switch n := c.failed[of.kind]; n {
		case 0:
		case 1:
			list = append(list, of.one)
		default:
			list = append(list, fmt.Sprintf(of.more, n))
		}
	}
	return list
}

// Notes are sentences about waivers that do nothing.
func (c *Check) Notes() (list []string) {
	for i := range c.Waivers {
		switch w := &c.Waivers[i]; {
		case w.Expired:
			list = append(list, fmt.Sprintf("%s: the waiver of %s expired on %s", w.at(), w.Probe, w.Until))
		case w.Used == 0 && w.Asked == 0:
			list = append(list, fmt.Sprintf("%s: the waiver is unused: %s on %s was not asked", w.at(), w.Probe, w.Kernel))
		case w.Used == 0:
			list = append(list, fmt.Sprintf("%s: the waiver is unused: %s does not fail on %s", w.at(), w.Probe, w.Kernel))
		}
	}
	return list
}
