//go:build cgo && linux && amd64

package bench

import (
	"math"
	"runtime"

	"kprobelab/kprobes"
)

// counting is how many hits are counted over. A run of one hit more than
// another differs by what a hit adds, whatever comes once in a run.
const counting = 1000

// counts is what a hit is made of, while it is planted.
func (s *subject) counts() (Parts, error) {
	var p [2]Parts
	for i, n := range []int{1, counting + 1} {
		s.Kprobes.Observe(func(e kprobes.Event) { p[i].add(&e) })
		err := s.run(n)
		s.Kprobes.Observe(nil)
		if err != nil {
			return p[i], err
		}
	}
	one, all := p[0], p[1]
	return Parts{
		Traps:       (all.Traps - one.Traps) / counting,
		Steps:       (all.Steps - one.Steps) / counting,
		Detours:     (all.Detours - one.Detours) / counting,
		Tracers:     (all.Tracers - one.Tracers) / counting,
		Trampolines: (all.Trampolines - one.Trampolines) / counting,
	}, nil
}

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

// instructions is how many the guest runs for a hit and the call around it.
func (s *subject) instructions() (float64, error) {
	var n [2]uint64
	for i, hits := range []int{1, counting + 1} {
		before := s.Machine.Instructions()
		if err := s.run(hits); err != nil {
			return 0, err
		}
		n[i] = s.Machine.Instructions() - before
	}
	return float64(n[1]-n[0]) / counting, nil
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
		least = min(least, float64(after.Mallocs-before.Mallocs)/counting)
	}
	return math.Floor(least*100) / 100, nil
}
