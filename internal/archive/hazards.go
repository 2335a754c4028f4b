package archive

import (
	"cmp"
	"encoding/json"
	"slices"
	"sort"
	"sync"

	"kprobelab/internal/printable"
	"kprobelab/kprobes/hazard"
	"kprobelab/kprobes/probepoint"
	"kprobelab/x86"
)

// hazardPoint is an entry of the section "hazards": what goes wrong at a point
// although the probe is accepted.
type hazardPoint struct {
	// After is the distance from the entry before, of the first one the address.
	After  uint64        `json:"+"`
	ID     hazard.ID     `json:"id"`
	Effect hazard.Effect `json:"effect"`
	Says   string        `json:"says"`
	// Lands is the distance to the wrong address at which the CPU continues, 0 if there is none.
	Lands int64 `json:"lands,omitempty"`

	at x86.Addr
}

// hazards are a group's hazards, by address; hazards of one address are in the table's order.
type hazards struct {
	mu   sync.Mutex
	list []hazardPoint
}

// add notes what was found at an address. It is safe for concurrent use.
func (h *hazards) add(at x86.Addr, found []hazard.Finding) {
	if len(found) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := range found {
		f := &found[i]
		p := hazardPoint{ID: f.ID, Effect: f.Effect, Says: f.Says, at: at}
		if f.Lands != 0 {
			p.Lands = int64(f.Lands.Sub(at))
		}
		h.list = append(h.list, p)
	}
}

// pack makes the section. A hazard that was added several times is there once.
func (h *hazards) pack() ([]byte, error) {
	slices.SortStableFunc(h.list, func(a, b hazardPoint) int { return cmp.Compare(a.at, b.at) })
	h.list = slices.CompactFunc(h.list, func(a, b hazardPoint) bool { return a.at == b.at && a.ID == b.ID })
	last := x86.Addr(0)
	for i := range h.list {
		h.list[i].After = uint64(h.list[i].at.Sub(last))
		last = h.list[i].at
	}
	return json.Marshal(h.list)
}

// readHazards reads the section.
func readHazards(b []byte) (*hazards, error) {
	h, effects := &hazards{}, hazard.Effects()
	if err := json.Unmarshal(b, &h.list); err != nil {
		return nil, damaged("its hazards: %v", err)
	}
	at := x86.Addr(0)
	for i := range h.list {
		p := &h.list[i]
		if _, ok := hazard.ByID(p.ID); !ok || !slices.Contains(effects, p.Effect) {
			return nil, damaged("a hazard %q, %q that is not known", p.ID, p.Effect)
		}
		at += x86.Addr(p.After)
		if i > 0 && at < h.list[i-1].at {
			return nil, damaged("its hazards are not in order")
		}
		p.at, p.Says = at, printable.Name(p.Says)
	}
	return h, nil
}

// of are the hazards at an address.
func (h *hazards) of(at x86.Addr) (found []hazard.Finding) {
	i := sort.Search(len(h.list), func(i int) bool { return h.list[i].at >= at })
	for ; i < len(h.list) && h.list[i].at == at; i++ {
		p := &h.list[i]
		f := hazard.Finding{ID: p.ID, Effect: p.Effect, Says: p.Says}
		if p.Lands != 0 {
			f.Lands = at.Add(p.Lands)
		}
		found = append(found, f)
	}
	return found
}

// hazardsAt returns the group's hazards at an address; they are read at the first use.
func (g *group) hazardsAt(at x86.Addr) ([]hazard.Finding, error) {
	if g.hazards == nil {
		b, err := g.section(hazardSection)
		if err != nil {
			return nil, err
		}
		if b == nil {
			return nil, nil // an older file
		}
		if g.hazards, err = readHazards(b); err != nil {
			g.hazards = &hazards{}
			return nil, err
		}
	}
	return g.hazards.of(at), nil
}

// hazardSection is the name.
const hazardSection = "hazards"

// hazardous reports whether a file has hazards. Files of older versions have none.
func (f *file) hazardous() bool {
	_, ok := f.parts[hazardSection]
	return ok
}

// Hazards implements report.Kernel.
func (k *Kernel) Hazards(p *probepoint.Point) []hazard.Finding {
	for _, g := range []*group{k.own, k.packaged} {
		if g == nil {
			continue
		}
		found, err := g.hazardsAt(p.Addr)
		if err != nil {
			k.failed(err)
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}
