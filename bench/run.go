//go:build cgo && linux && amd64

package bench

import (
	"fmt"
	"runtime"
	"time"
)

// Run measures. In every round each path, and each cost of the floor, is run
// unprobed and probed in turn, so that what disturbs the host disturbs all
// alike. Errors: ErrNoPath, EINVAL for options out of range, and those of the
// machine. nil options mean the defaults.
func Run(o *Options) (*Report, error) {
	if o == nil {
		o = &Options{}
	}
	opt := *o
	chosen, err := opt.fill()
	if err != nil {
		return nil, err
	}
	r := &run{o: &opt}
	defer r.close()
	if err := r.prepare(chosen); err != nil {
		return nil, err
	}
	if err := r.measure(); err != nil {
		return nil, err
	}
	return r.report(chosen)
}

// run is a run under way.
type run struct {
	o *Options
	// subjects are the floor's, then the paths'.
	subjects []*subject
	samples  [][]float64
	results  []Result
}

func (r *run) close() {
	for _, s := range r.subjects {
		s.Close()
	}
}

func (r *run) prepare(chosen []Path) error {
	for i := range floorSpecs {
		s, err := floorSpecs[i].make()
		if err != nil {
			return fmt.Errorf("floor %s: %w", floorSpecs[i].name, err)
		}
		r.subjects = append(r.subjects, s)
	}
	for i := range chosen {
		s, err := chosen[i].subject()
		if err != nil {
			return err
		}
		r.subjects = append(r.subjects, s)
		res, err := r.examine(&chosen[i], s)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		r.results = append(r.results, res)
	}
	r.samples = make([][]float64, len(r.subjects))
	return nil
}

// examine counts what a hit is made of.
func (r *run) examine(p *Path, s *subject) (Result, error) {
	res := Result{Path: p.Name, Describes: p.Describes, Profile: p.Profile(), Handler: p.handler(), Documented: p.Documented}
	bare, err := s.instructions()
	if err != nil {
		return res, err
	}
	if err := s.plant(); err != nil {
		return res, err
	}
	probed, err := s.instructions()
	if err != nil {
		return res, err
	}
	res.Instructions = round2(probed - bare)
	if res.Parts, err = s.counts(); err != nil {
		return res, err
	}
	if res.Parts != p.parts {
		return res, fmt.Errorf("a hit is made of %+v, not %+v", res.Parts, p.parts)
	}
	if res.Allocs, err = s.allocs(); err != nil {
		return res, err
	}
	res.Modelled = round4(r.o.Hardware.Cost(res.Parts))
	return res, s.remove()
}

// handler says where the path's handlers are.
func (p *Path) handler() string {
	switch p.kind {
	case missedReturn, nestedMiss, disabled:
		return "none"
	}
	return "go"
}

func (r *run) measure() error {
	runtime.GC()
	total := int64(r.o.Rounds * len(r.subjects))
	for round := range r.o.Rounds {
		for i, s := range r.subjects {
			if r.o.Progress != nil {
				r.o.Progress("measuring", int64(round*len(r.subjects)+i), total)
			}
			ns, err := s.round(r.o.Hits)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			r.samples[i] = append(r.samples[i], ns)
		}
	}
	return nil
}

// round is one sample: nanoseconds per hit, probed minus unprobed.
func (s *subject) round(hits int) (float64, error) {
	bare, err := s.timed(hits)
	if err != nil {
		return 0, err
	}
	if err := s.plant(); err != nil {
		return 0, err
	}
	var before uint64
	if s.hits != nil {
		before = *s.hits
	}
	probed, err := s.timed(hits)
	if err != nil {
		return 0, err
	}
	if s.hits != nil && *s.hits-before != uint64(hits+warming) {
		return 0, fmt.Errorf("%d calls made %d hits", hits+warming, *s.hits-before)
	}
	return float64(probed-bare) / float64(hits), s.remove()
}

// warming is how many hits translate what is new before the clock starts.
const warming = 100

func (s *subject) timed(hits int) (time.Duration, error) {
	if err := s.run(warming); err != nil {
		return 0, err
	}
	start := time.Now()
	err := s.run(hits)
	return time.Since(start), err
}

func (r *run) report(chosen []Path) (*Report, error) {
	rep := &Report{Rounds: r.o.Rounds, Hits: r.o.Hits, Hardware: r.o.Hardware}
	floor := map[string]float64{}
	for i, f := range floorSpecs {
		low, ns, high := quartiles(r.samples[i])
		floor[f.name] = max(ns, 0)
		rep.Floor = append(rep.Floor, Floor{Name: f.name, Describes: f.describes, NS: round2(ns), Low: round2(low), High: round2(high)})
	}
	for i, res := range r.results {
		res.Samples = r.samples[len(floorSpecs)+i]
		low, ns, high := quartiles(res.Samples)
		res.Low, res.NS, res.High = round2(low), round2(ns), round2(high)
		if res.Floor = round2(floorOf(&chosen[i], floor)); res.Floor > 0 {
			res.Ratio = round2(ns / res.Floor)
		}
		rep.Paths = append(rep.Paths, res)
	}
	return rep, nil
}
