package bench

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"kprobelab"
)

// Run measures. In every round each path, and each cost of the floor, is run unprobed and probed in
// turn, so that a disturbance of the host disturbs all alike. The error is ErrNoPath, EINVAL for
// options out of range, an error of opening a target or of its call, ErrUnmeasurable, a
// *probepoint.Refusal if no probe may be at the target, or an error of the machine. nil options
// mean the defaults.
func Run(o *Options) (*Report, error) {
	if o == nil {
		o = &Options{}
	}
	opt := *o
	chosen, err := opt.fill()
	if err != nil {
		return nil, err
	}
	r := &run{o: &opt, stands: map[standKey]*kprobelab.Lab{}}
	defer r.close()
	if err := r.prepare(chosen); err != nil {
		return nil, err
	}
	if len(r.paths) > 0 {
		if err := r.measure(); err != nil {
			return nil, err
		}
	}
	return r.report(), nil
}

// run is a run under way.
type run struct {
	o *Options
	// subjects are the floor's, then the paths'.
	subjects []*subject
	samples  [][]float64
	// paths and results belong to the subjects after the floor's.
	paths   []*Path
	results []Result
	stands  map[standKey]*kprobelab.Lab
	// target is nil for the guest kernel's functions.
	target *target
	// skipped are the paths that hits on the target do not take.
	skipped []Skipped
}

func (r *run) close() {
	for _, l := range r.stands {
		l.Close()
	}
	for _, s := range r.subjects { // the floor's have one each
		s.Close()
	}
}

func (r *run) prepare(chosen []Path) error {
	if r.o.Target != nil {
		var err error
		if r.target, err = r.aim(r.o.Target); err != nil {
			return err
		}
	}
	for i := range floorSpecs {
		s, err := floorSpecs[i].make()
		if err != nil {
			return fmt.Errorf("floor %s: %w", floorSpecs[i].name, err)
		}
		r.subjects = append(r.subjects, s)
	}
	for i := range chosen {
		for _, others := range r.o.Others {
			if err := r.add(&chosen[i], others); err != nil {
				return err
			}
		}
	}
	r.samples = make([][]float64, len(r.subjects))
	return nil
}

// add prepares a path, or notes why the target has not got it.
func (r *run) add(p *Path, others int) error {
	if slices.ContainsFunc(r.skipped, func(s Skipped) bool { return s.Path == p.Name }) {
		return nil
	}
	s, err := r.subject(p, others)
	if err != nil {
		return r.skip(p, err)
	}
	res, err := r.examine(p, s)
	if err != nil {
		return r.skip(p, fmt.Errorf("%s: %w", s.name, err))
	}
	res.Others = others
	r.subjects = append(r.subjects, s)
	r.paths = append(r.paths, p)
	r.results = append(r.results, res)
	return nil
}

func (r *run) subject(p *Path, others int) (*subject, error) {
	if r.target != nil {
		return r.targetSubject(p, others)
	}
	l, err := r.stand(standKey{p.release, p.preempt, p.optimize, others}, guestKernel(p.config(), p.optimize, others))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	return p.subject(l, p.guestSite(&stand{Lab: l}))
}

// standKey is the set of properties of a kernel that a path depends on.
type standKey struct {
	release           string
	preempt, optimize bool
	others            int
}

// stand returns the kernel for a path. Paths with the same key share it.
func (r *run) stand(key standKey, spec *standSpec) (*kprobelab.Lab, error) {
	if l := r.stands[key]; l != nil {
		return l, nil
	}
	r.progress("planting other probes", int64(len(r.stands)))
	s, err := spec.make()
	if err != nil {
		return nil, err
	}
	r.stands[key] = s.Lab
	return s.Lab, nil
}

func (r *run) progress(stage string, done int64) {
	if r.o.Progress != nil {
		r.o.Progress(stage, done, 0)
	}
}

// examine counts the parts of a hit.
func (r *run) examine(p *Path, s *subject) (Result, error) {
	res := Result{Path: p.Name, Describes: p.Describes, Profile: r.profile(p), Handler: p.handler(), Documented: p.Documented}
	bare, err := s.effort()
	if err != nil {
		return res, err
	}
	if err := s.plant(); err != nil {
		return res, errors.Join(err, s.remove())
	}
	probed, err := s.effort()
	if err != nil {
		return res, err
	}
	res.Instructions, res.Crossings = round2(probed.instructions-bare.instructions), round2(probed.crossings-bare.crossings)
	if res.Parts, err = s.counted(p.parts); err != nil {
		return res, errors.Join(err, s.remove())
	}
	if res.Allocs, err = s.allocs(); err != nil {
		return res, err
	}
	res.Modelled = round4(r.o.Hardware.Cost(res.Parts))
	return res, s.remove()
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
	calls := (hits + s.per - 1) / s.per
	bare, _, err := s.timed(calls)
	if err != nil {
		return 0, err
	}
	if err := s.plant(); err != nil {
		return 0, err
	}
	probed, made, err := s.timed(calls)
	if err != nil {
		return 0, err
	}
	if s.hits != nil && made != uint64(calls*s.per) {
		return 0, fmt.Errorf("%d calls made %d hits, not %d each", calls, made, s.per)
	}
	return float64(probed-bare) / s.hitsOf(calls), s.remove()
}

// warming is the number of calls that translate new code before the clock starts.
const warming = 100

// timed returns the time that so many calls take, and the number of their hits.
func (s *subject) timed(calls int) (took time.Duration, hits uint64, err error) {
	if err := s.run(warming); err != nil {
		return 0, 0, err
	}
	for calls > 0 && err == nil {
		n, last := min(calls, s.chunk), time.Duration(0)
		made, e := s.quiet(func() error {
			start := time.Now()
			err := s.run(n)
			last = time.Since(start)
			return err
		})
		took, hits, err, calls = took+last, hits+made, e, calls-n
	}
	return took, hits, err
}

func (r *run) report() *Report {
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
		if res.Floor = round2(floorOf(r.paths[i], floor)); res.Floor > 0 {
			res.Ratio = round2(ns / res.Floor)
		}
		rep.Paths = append(rep.Paths, res)
	}
	if r.target != nil {
		rep.Target, rep.Skipped = &r.target.measured, r.skipped
	}
	return rep
}
