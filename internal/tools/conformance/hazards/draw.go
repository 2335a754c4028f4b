package hazards

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"kprobelab/decoder"
	"kprobelab/internal/qemu/frame"
	"kprobelab/internal/report"
	"kprobelab/kimage"
	"kprobelab/kprobes/hazard"
	"kprobelab/x86"
)

// draw chooses the points to try. It takes only points that a workload reaches.
type draw struct {
	img        *kimage.Image
	rand       *rand.Rand
	candidates []candidate
	// faults are the points that need a fault besides the hit. All of them are tried.
	faults []Point
}

// needsFault is the hazard that a hit alone does not show.
const needsFault hazard.ID = "OTHER_FAULT"

// candidate is a hazard point that kprobe_events takes, with the instructions around it
// that are no hazards.
type candidate struct {
	report.HazardPoint
	// before and after are its neighbours, 0 where there is none. before goes on to the
	// point whenever it runs.
	before, after x86.Addr
	// next is the address past its instruction.
	next x86.Addr
	// workloads come to it.
	workloads []string
	// idle: it is hit without a workload too.
	idle bool
}

func newDraw(img *kimage.Image, list []report.HazardPoint, r *rand.Rand) *draw {
	d := &draw{img: img, rand: r}
	danger := map[x86.Addr]bool{}
	for i := range list {
		danger[list[i].Addr.Addr] = true
	}
	w := kimage.NewWalker(img, &img.Profile().Decoder)
	for i := range list {
		p := &list[i]
		if !p.Effect.Harms() || p.Reproducer == nil || p.Reproducer.Define == "" {
			continue
		}
		if p.Hazard == needsFault {
			d.faults = append(d.faults, Point{Addr: p.Addr.Addr, Name: nameOf(img, p.Addr.Addr), Workload: Faulty, Hazard: p.Hazard, Effect: p.Effect})
			continue
		}
		c := candidate{HazardPoint: *p}
		sym, _ := img.SymbolAt(p.Addr.Addr)
		var last kimage.Step
		for s := range w.Function(sym) {
			switch {
			case s.Addr == p.Addr.Addr:
				c.next = s.Addr.Add(int64(s.Reading.Length))
				if last.Reading.Kind == decoder.KindPlain && !danger[last.Addr] {
					c.before = last.Addr
				}
			case last.Addr == p.Addr.Addr && !s.IsPadding() && !danger[s.Addr]:
				c.after = s.Addr
			}
			last = *s
		}
		if c.before != 0 { // without one nothing tells whether a workload comes to it
			d.candidates = append(d.candidates, c)
		}
	}
	return d
}

// definitions have a probe before each candidate.
func (d *draw) definitions() string {
	var b strings.Builder
	for i := range d.candidates {
		fmt.Fprintf(&b, "p:%s/d%d %v\n", frame.Group, i, d.candidates[i].before)
	}
	return b.String()
}

// reached notes which workload comes to which candidate, and counts these. A candidate that is hit without a
// workload, too, is left out: it would be hit before the workload runs.
func (d *draw) reached(hits []byte) (n int) {
	for line := range strings.Lines(string(hits)) {
		words := strings.Fields(line)
		if len(words) != 3 {
			continue
		}
		i, err := strconv.Atoi(strings.TrimPrefix(words[1], "d"))
		if err != nil || i >= len(d.candidates) {
			continue
		}
		if words[0] == Idle {
			d.candidates[i].idle = true
		} else {
			d.candidates[i].workloads = append(d.candidates[i].workloads, words[0])
		}
	}
	for i := range d.candidates {
		if len(d.candidates[i].workloads) > 0 && !d.candidates[i].idle {
			n++
		}
	}
	return n
}

// points draws n hazard points, and a neighbour of each.
func (d *draw) points(n int) (list []Point) {
	var from []*candidate
	for i := range d.candidates {
		if c := &d.candidates[i]; len(c.workloads) > 0 && !c.idle {
			from = append(from, c)
		}
	}
	d.rand.Shuffle(len(from), func(i, j int) { from[i], from[j] = from[j], from[i] })
	for _, c := range from[:min(n, len(from))] {
		workload := c.workloads[d.rand.IntN(len(c.workloads))]
		p := Point{Addr: c.Addr.Addr, Name: nameOf(d.img, c.Addr.Addr), Workload: workload, Hazard: c.Hazard, Effect: c.Effect, Lands: c.Lands.Addr, Next: c.next}
		near := Point{Addr: c.before, Workload: workload}
		if c.after != 0 && d.rand.IntN(2) == 0 {
			near.Addr = c.after
		}
		if near.Name = nameOf(d.img, near.Addr); p.Lands < p.Next { // nobody else comes to the middle of an instruction
			near.Lands = p.Lands
		}
		list = append(list, near, p)
	}
	return list
}

func nameOf(img *kimage.Image, a x86.Addr) string {
	sym, _ := img.SymbolAt(a)
	return fmt.Sprintf("%s+%#x", sym.Name, uint64(a.Sub(sym.Addr)))
}
