package explore

import (
	"context"
	"fmt"
	"math/rand/v2"

	"kprobelab/profile"
)

// Walk makes runs by chance, with priorities (PCT, Burckhardt and others 2010): each
// task has a random priority, of the tasks that can continue the one with the highest
// does, and at depth-1 random steps the running task gets the lowest. A bug that needs
// depth such steps is found with a known probability. A fetch that may be stale is
// stale one time in three. The first bad end is made smaller.
func (p *Program) Walk(ctx context.Context, o Options, walks int, seed uint64) (*Result, error) {
	s := &search{p: p.p, o: &o, visited: map[spot]int{}, states: map[uint64]struct{}{}, ends: map[uint64]struct{}{}, held: make([]bool, len(p.p.s.Exists))}
	length := 100
	for n := range walks {
		if ctx.Err() != nil {
			return s.result(Unfinished, fmt.Sprintf("ended after %d walks", n)), nil
		}
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		r, err := newRun(p.p, o.Profile)
		if err != nil {
			return nil, err
		}
		s.counts.Runs++
		picks := s.walk(r, rng, length)
		length = max(length, len(picks))
		verdict, reason := r.verdict, r.reason
		r.close()
		if verdict != "" {
			return p.walked(s, o.Profile, picks, verdict, reason)
		}
		if o.Progress != nil && n%progressRuns == progressRuns-1 {
			o.Progress(s.counted())
		}
	}
	return s.result(OK, ""), nil
}

func (p *Program) walked(s *search, c *profile.Config, picks []string, v Verdict, reason string) (*Result, error) {
	res := s.result(v, reason)
	var err error
	if res.Failing, err = p.shrink(c, picks, v); err == nil {
		res.Reason = res.Failing.Reason
	}
	return res, err
}

// walkDepth is the d of PCT.
const walkDepth = 4

func (s *search) walk(r *run, rng *rand.Rand, length int) (picks []string) {
	tasks := len(r.tasks)
	priority := make([]int, tasks+len(r.w.cpus))
	for i, n := range rng.Perm(len(priority)) {
		priority[i] = n
	}
	lower := map[int]bool{}
	for range walkDepth - 1 {
		lower[rng.IntN(length)] = true
	}
	of := func(c *choice) int {
		if c.task == nil {
			return tasks + c.ack
		}
		return c.task.n
	}
	for step := 0; ; step++ {
		s.buf = r.choices(s.buf)
		if r.over(len(s.buf)) {
			break
		}
		best := 0
		for i := range s.buf {
			if priority[of(&s.buf[i])] > priority[of(&s.buf[best])] {
				best = i
			}
		}
		if lower[step] {
			priority[of(&s.buf[best])] = -step
		}
		if c := s.buf[best]; c.task != nil && c.task.wait.fetch && rng.IntN(3) == 0 {
			n := 1
			for best+n < len(s.buf) && s.buf[best+n].task == c.task {
				n++
			}
			best += rng.IntN(n)
		}
		c := s.buf[best]
		picks = append(picks, c.decision())
		r.take(c)
		s.counts.Steps++
		s.states[r.state] = struct{}{}
	}
	if r.verdict == "" {
		s.ends[r.state] = struct{}{}
	}
	return picks
}

// Sample is the run of one such walk, whatever its end.
func (p *Program) Sample(c *profile.Config, seed uint64) (*Schedule, error) {
	r, err := newRun(p.p, c)
	if err != nil {
		return nil, err
	}
	s := &search{p: p.p, states: map[uint64]struct{}{}, ends: map[uint64]struct{}{}}
	picks := s.walk(r, rand.New(rand.NewPCG(seed, 0)), 60)
	r.close()
	return p.Replay(c, picks)
}

// Code returns the program's functions as they are laid out, and the offset of each
// function by its name.
func (p *Program) Code() ([]byte, map[string]int) {
	at := map[string]int{}
	for _, s := range p.p.symbols {
		at[s.Name] = int(s.Addr.Sub(textBase))
	}
	return p.p.text[:p.p.end], at
}
