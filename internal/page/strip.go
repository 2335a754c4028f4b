package page

import (
	"fmt"
	"slices"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// Strip is the memory at a probed place, as a picture: a cell for each byte that the jump touches, and the next ones.
type Strip struct {
	Place   string      `json:"place"`
	Address string      `json:"address"`
	Cells   []StripCell `json:"cells"`
	// DCR is the number of bytes of the whole instructions that the jump touches. Ftrace: the place is an fentry
	// site, where there is neither DCR nor JTPR.
	DCR    int  `json:"dcr"`
	Ftrace bool `json:"ftrace"`
	// Seen has the bytes that each CPU may fetch.
	Seen [][]string `json:"seen"`
	// Slot and Detour are addresses, "" if there is none yet; Copies is the address of the copied instructions.
	Slot   string `json:"slot,omitempty"`
	Detour string `json:"detour,omitempty"`
	Copies string `json:"copies,omitempty"`
	// Pool has the instances of a return probe.
	Pool []Card `json:"pool,omitempty"`
	// Lands are the jumps of the function into the bytes that the probe's jump would replace.
	Lands []Landing `json:"lands,omitempty"`
	// Failed has the offsets at which CPUs have failed, by CPU; -1 for elsewhere and for none.
	Failed []int `json:"failed,omitempty"`
}

// Landing is a jump to the byte At of a strip.
type Landing struct {
	From string `json:"from"`
	Text string `json:"text"`
	At   int    `json:"at"`
}

// StripCell is a byte: in memory, and in the image.
type StripCell struct {
	Value   string `json:"value"`
	Was     string `json:"was"`
	Changed bool   `json:"changed,omitempty"`
	// Begins: an instruction of the original begins here.
	Begins bool `json:"begins,omitempty"`
	// Step and Sub are the event that wrote the byte, By its text; By is "" for the original byte.
	Step int    `json:"step"`
	Sub  int    `json:"sub"`
	By   string `json:"by,omitempty"`
}

// Card is an instance of a return probe: free, or with the CPU's call that it follows.
type Card struct {
	Who     string `json:"who"`
	Returns string `json:"returns"`
}

// writer is the event that last wrote a byte.
type writer struct {
	value     byte
	step, sub int
	by        string
}

// stripSize is the number of bytes that a strip has.
const stripSize = 10

// wrote finds the bytes at the probed places that have changed, and notes the event that wrote them.
func (r *run) wrote(step, sub int, by string) {
	for _, p := range r.probes {
		if p.planned == 0 {
			continue
		}
		b := r.read(p.planned, stripSize)
		for i, value := range b {
			a := p.planned.Add(int64(i))
			if w, ok := r.writers[a]; ok && w.value == value {
				continue
			}
			r.writers[a] = writer{value, step, sub, by}
		}
	}
}

// strips are the pictures of the probed places.
func (r *run) strips(now, before *moment) (list []Strip) {
	list = []Strip{}
	for _, p := range r.probes {
		at := p.planned
		if at == 0 || slices.ContainsFunc(list, func(s Strip) bool { return s.Address == at.String() }) {
			continue
		}
		if s, ok := r.strip(p, now, before); ok {
			list = append(list, s)
		}
	}
	return list
}

func (r *run) strip(p *planted, now, before *moment) (s Strip, ok bool) {
	at, off := p.planned, 0
	for n, w := range r.watched {
		if !w.Contains(at) {
			off += int(w.Len())
			continue
		}
		i := off + int(at.Sub(w.Start))
		size := min(stripSize, int(w.End.Sub(at)))
		s = Strip{Place: r.symbol(at), Address: at.String(), Seen: [][]string{}}
		original := make([]byte, size)
		r.img.CodeAt(at, original)
		begins := map[x86.Addr]bool{}
		for _, o := range r.originals(n) {
			begin := w.Start.Add(int64(o.off))
			begins[begin] = true
			if end := begin.Add(int64(len(o.bytes))); begin < at.Add(x86.Rel32Size) && end > at {
				s.DCR = int(end.Sub(at))
			}
			if k := int(o.to.Sub(at)); o.to > at && k <= x86.Rel32Size && k < size {
				s.Lands = append(s.Lands, Landing{fmt.Sprintf("+%#x", o.off), o.text, k})
			}
		}
		for j := range size {
			a := at.Add(int64(j))
			c := StripCell{Value: hexOf[now.text[i+j]], Was: hexOf[original[j]], Begins: begins[a], Changed: now.text[i+j] != before.text[i+j]}
			if w, ok := r.writers[a]; ok && w.by != "" {
				c.Step, c.Sub, c.By = w.step, w.sub, w.by
			}
			s.Cells = append(s.Cells, c)
		}
		for cpu := range r.tasks {
			var seen []string
			for j := range size {
				seen = append(seen, hexOf[now.seen[cpu][i+j]])
			}
			s.Seen = append(s.Seen, seen)
		}
		for cpu := range r.tasks {
			k := -1
			if ip := r.failedAt[cpu]; ip >= at && ip < at.Add(int64(size)) {
				k = int(ip.Sub(at))
			}
			s.Failed = append(s.Failed, k)
		}
		r.around(p, now, &s)
		return s, true
	}
	return s, false
}

// around adds what kprobes has made for the probe.
func (r *run) around(p *planted, now *moment, s *Strip) {
	if e := r.lab.Kprobes.Find(p.planned); e != nil {
		s.Ftrace = e.OnFtrace()
	}
	for i, made := range now.pieces {
		switch {
		case made.of != p.planned:
		case made.kind == "slot":
			s.Slot = now.pieces[i].at.String()
		default:
			s.Detour, s.Copies = made.at.String(), made.at.Add(int64(made.template)).String()
		}
	}
	for n := range now.pools {
		if now.pools[n].of == p.planned {
			s.Pool = append(s.Pool, now.pools[n].cards...)
		}
	}
}

// pool is the instances of a return probe at one time.
type pool struct {
	of    x86.Addr
	cards []Card
}

// maxCards is the most instances that are shown.
const maxCards = 8

// poolOf shows a return probe's instances.
func (r *run) poolOf(p *planted) (cards []Card) {
	p.rp.EachInstance(func(i *kprobes.Instance, used bool) {
		switch {
		case len(cards) == maxCards:
		case used:
			who := fmt.Sprintf("task %d", i.Task)
			for cpu, t := range r.tasks {
				if t.Number() == i.Task {
					who = fmt.Sprintf("CPU %d", cpu)
				}
			}
			cards = append(cards, Card{who, r.symbol(i.RetAddr)})
		default:
			cards = append(cards, Card{})
		}
	})
	return cards
}
