package bench

import (
	"fmt"
	"math"
	"runtime"

	"kprobelab/kprobes"
)

// counting is the number of calls that are counted over. A run of one call more is compared with a
// run of one call, so costs that come once in a run are left out.
const counting = 1000

// quietTime is the number of instructions that a run of calls may take on a booted kernel, to fit
// between two ticks of its timer: four million at 250 ticks a second.
const quietTime = 1_000_000

// settleChunk measures the number of calls that fit into one run.
func (s *subject) settleChunk() error {
	if s.chunk = counting; s.Image.Core() == nil {
		return nil
	}
	if err := s.run(1); err != nil {
		return err
	}
	const trial = 10
	before := s.Machine.Instructions()
	if err := s.run(trial); err != nil {
		return err
	}
	s.chunk = max(1, min(counting, int(quietTime*trial/max(1, s.Machine.Instructions()-before))))
	return nil
}

// hitsOf returns the number of hits of so many calls.
func (s *subject) hitsOf(calls int) float64 { return float64(calls * s.per) }

// counts returns the parts of a hit of the planted probe, and the number of hits of the calls that
// were counted: 1 call, and chunk more.
func (s *subject) counts() (p Parts, hits uint64, err error) {
	var runs [2]Parts
	for i, calls := range []int{1, s.chunk + 1} {
		n, err := s.quiet(func() error {
			runs[i] = Parts{}
			s.Kprobes.Observe(func(e kprobes.Event) { runs[i].add(&e) })
			defer s.Kprobes.Observe(nil)
			return s.run(calls)
		})
		if err != nil {
			return runs[i], 0, err
		}
		hits += n
	}
	one, all, per := runs[0], runs[1], s.hitsOf(s.chunk)
	return Parts{
		Traps:       (all.Traps - one.Traps) / per,
		Steps:       (all.Steps - one.Steps) / per,
		Detours:     (all.Detours - one.Detours) / per,
		Tracers:     (all.Tracers - one.Tracers) / per,
		Trampolines: (all.Trampolines - one.Trampolines) / per,
	}, hits, nil
}

// counted is counts. It also checks that a hit has the path's parts, and that every call made its
// hits; else the error is untaken.
func (s *subject) counted(want Parts) (Parts, error) {
	p, hits, err := s.counts()
	switch made := uint64(s.chunk+2) * uint64(s.per); {
	case err != nil:
		return p, err
	case p != want:
		return p, untaken(fmt.Sprintf("a hit is made of %s, not of %s", p, want))
	case s.hits != nil && hits != made:
		return p, untaken(fmt.Sprintf("of %d hits, %d are counted", made, hits))
	}
	return p, nil
}

// quietTries is the number of times a run is repeated after an interrupt.
const quietTries = 5

// quiet makes a run, and repeats it if an interrupt came: the timer of a booted kernel interrupts,
// and the instructions of its handler are no part of the calls. A run longer than the time between
// two interrupts stays as it is. hits is the number of hits of the last run.
func (s *subject) quiet(run func() error) (hits uint64, err error) {
	s.Machine.Alone(true) // other processors' instructions are no part of the calls either
	defer s.Machine.Alone(false)
	for range quietTries {
		if s.hits != nil {
			hits = s.hits()
		}
		before, _ := s.Machine.Interrupts()
		if err := run(); err != nil {
			return 0, err
		}
		if after, _ := s.Machine.Interrupts(); after == before {
			break
		}
	}
	if s.hits != nil {
		hits = s.hits() - hits
	}
	return hits, nil
}

// untaken is the reason why hits do not take a path, in a sentence.
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

// effort is the cost of a hit and the call around it: instructions that the guest runs, and calls
// into Go.
type effort struct{ instructions, crossings float64 }

// effort is counted after a first call, which translates new code.
func (s *subject) effort() (effort, error) {
	var instrs, crossings [3]uint64
	for i, calls := range []int{1, 1, s.chunk + 1} {
		_, err := s.quiet(func() error {
			before, crossed := s.Machine.Instructions(), s.Machine.Crossings()
			err := s.run(calls)
			instrs[i], crossings[i] = s.Machine.Instructions()-before, s.Machine.Crossings()-crossed
			return err
		})
		if err != nil {
			return effort{}, err
		}
	}
	hits := s.hitsOf(s.chunk)
	return effort{float64(instrs[2]-instrs[1]) / hits, float64(crossings[2]-crossings[1]) / hits}, nil
}

// allocs is the heap allocations per hit, while it is planted.
func (s *subject) allocs() (float64, error) {
	least := math.Inf(1)
	for range 3 { // the runtime's own come now and then
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := s.run(s.chunk)
		runtime.ReadMemStats(&after)
		if err != nil {
			return 0, err
		}
		least = min(least, float64(after.Mallocs-before.Mallocs)/s.hitsOf(s.chunk))
	}
	return math.Floor(least*100) / 100, nil
}
