package bench

import (
	"fmt"
	"math"
	"runtime"

	"kprobelab/kprobes"
)

// counting is how many calls are counted over: a run of so many and one more is
// compared with a run of one, so what comes once in a run is left out.
const counting = 1000

// hitsOf is how many hits so many calls make.
func (s *subject) hitsOf(calls int) float64 { return float64(calls * s.per) }

// counts is what a hit is made of, while it is planted.
func (s *subject) counts() (Parts, error) {
	var p [2]Parts
	for i, calls := range []int{1, counting + 1} {
		s.Kprobes.Observe(func(e kprobes.Event) { p[i].add(&e) })
		err := s.run(calls)
		s.Kprobes.Observe(nil)
		if err != nil {
			return p[i], err
		}
	}
	one, all, hits := p[0], p[1], s.hitsOf(counting)
	return Parts{
		Traps:       (all.Traps - one.Traps) / hits,
		Steps:       (all.Steps - one.Steps) / hits,
		Detours:     (all.Detours - one.Detours) / hits,
		Tracers:     (all.Tracers - one.Tracers) / hits,
		Trampolines: (all.Trampolines - one.Trampolines) / hits,
	}, nil
}

// counted is counts, and checks that a hit is made of what the path should have,
// and that every call made its hits. The error is untaken where they did not.
func (s *subject) counted(want Parts) (Parts, error) {
	var before uint64
	if s.hits != nil {
		before = s.hits()
	}
	p, err := s.counts()
	switch {
	case err != nil:
		return p, err
	case p != want:
		return p, untaken(fmt.Sprintf("a hit is made of %s, not of %s", p, want))
	case s.hits != nil && s.hits()-before != uint64(counting+2)*uint64(s.per):
		return p, untaken(fmt.Sprintf("of %d hits, %d are counted", (counting+2)*s.per, s.hits()-before))
	}
	return p, nil
}

// untaken is why hits do not take a path, in a sentence.
type untaken string

func (u untaken) Error() string { return string(u) }

// add counts an event.
func (p *Parts) add(e *kprobes.Event) {
	hit := e.Kind == kprobes.EventTrap || e.Kind == kprobes.EventMissed
	switch {
	case hit && e.Probe.OnFtrace():
		p.Tracers++
	case hit:
		p.Traps++
	case e.Kind == kprobes.EventStep:
		p.Steps++
	case e.Kind == kprobes.EventOptimized:
		p.Detours++
	case e.Kind == kprobes.EventReturn:
		p.Trampolines++
	}
}

// effort is what a hit and the call around it take: instructions that the
// guest runs, and calls into Go.
type effort struct{ instructions, crossings float64 }

// effort is counted after a first call, in which the fast path of guest code may
// still have been learning.
func (s *subject) effort() (effort, error) {
	var instrs, crossings [3]uint64
	for i, calls := range []int{1, 1, counting + 1} {
		instrs[i], crossings[i] = s.Machine.Instructions(), s.Machine.Crossings()
		if err := s.run(calls); err != nil {
			return effort{}, err
		}
		instrs[i], crossings[i] = s.Machine.Instructions()-instrs[i], s.Machine.Crossings()-crossings[i]
	}
	hits := s.hitsOf(counting)
	return effort{float64(instrs[2]-instrs[1]) / hits, float64(crossings[2]-crossings[1]) / hits}, nil
}

// allocs is the heap allocations per hit, while it is planted.
func (s *subject) allocs() (float64, error) {
	least := math.Inf(1)
	for range 3 { // the runtime's own come now and then
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := s.run(counting)
		runtime.ReadMemStats(&after)
		if err != nil {
			return 0, err
		}
		least = min(least, float64(after.Mallocs-before.Mallocs)/s.hitsOf(counting))
	}
	return math.Floor(least*100) / 100, nil
}
