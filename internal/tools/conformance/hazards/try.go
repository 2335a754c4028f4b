package hazards

import (
	"fmt"
	"strings"
	"sync"

	"kprobelab/internal/qemu"
	"kprobelab/internal/qemu/frame"
)

// atOnce is the number of machines that run at once.
const atOnce = 2

// try tries each point: a hazard on a machine of its own, the neighbours on one after
// the other, as nothing is to come of them. told gets each result when it is there.
func (o *Options) try(m *qemu.Machine, points []Point, told func(*Result)) []Result {
	results := make([]Result, len(points))
	var neighbours, hazards []int
	for i := range points {
		results[i] = Result{Point: points[i], Outcome: NotTried}
		if points[i].Hazard == "" {
			neighbours = append(neighbours, i)
		} else {
			hazards = append(hazards, i)
		}
	}
	inParallel(1+len(hazards), func(i int) {
		if i == 0 {
			o.neighbours(m, results, neighbours, told)
			return
		}
		r := &results[hazards[i-1]]
		o.together(m, []*Result{r})
		told(r)
	})
	return results
}

// inParallel does n jobs, atOnce of them at a time.
func inParallel(n int, do func(i int)) {
	jobs := make(chan int)
	var workers sync.WaitGroup
	for range atOnce {
		workers.Go(func() {
			for i := range jobs {
				do(i)
			}
		})
	}
	for i := range n {
		jobs <- i
	}
	close(jobs)
	workers.Wait()
}

// neighbours tries them on one machine. One of which something comes is tried again on a
// machine of its own, where that counts; those after it go on on a new one.
func (o *Options) neighbours(m *qemu.Machine, results []Result, which []int, told func(*Result)) {
	for len(which) > 0 {
		group := make([]*Result, len(which))
		for i, k := range which {
			group[i] = &results[k]
		}
		n := o.together(m, group)
		if last := group[n-1]; last.Verdict() != AsPredicted && n > 1 {
			before := last.happened()
			*last = Result{Point: last.Point, Outcome: NotTried}
			if o.together(m, []*Result{last}); last.Verdict() == AsPredicted {
				last.Note = fmt.Sprintf("after %d others: %s", n-1, before)
			}
		}
		for _, r := range group[:n] {
			told(r)
		}
		which = which[n:]
	}
}

// together tries points one after the other on a copy of the machine, until something
// comes of one, and returns how many it has tried, at least one.
func (o *Options) together(m *qemu.Machine, group []*Result) (n int) {
	spot := &spotter{found: make(chan spotted, 1)}
	one := *m
	one.Console = spot
	points := make([]Point, len(group))
	for i, r := range group {
		points[i] = r.Point
	}
	err := one.Boot(func(r *qemu.Running) error {
		l, err := watch(r, points)
		if err != nil {
			return err
		}
		s := newSession(r, spot)
		for _, out := range group {
			n++
			if err := s.try(out); err != nil {
				return err
			}
			if out.Landed, out.Register = l.at(out.Lands); out.Verdict() != AsPredicted {
				return nil
			}
		}
		return nil
	})
	if n = max(n, 1); err != nil && group[n-1].Outcome == NotTried {
		group[n-1].Note = strings.SplitN(err.Error(), "\n", 2)[0]
	}
	return n
}

// try tries a point on a machine.
func (s *session) try(out *Result) error {
	var t Tried
	ask := fmt.Sprintf("%s %s p:%s/%s %v", Try, out.Workload, frame.Group, Event, out.Addr)
	if out.Module != "" {
		ask = Load + " " + out.Module
	}
	if err := s.r.Tell(ask); err != nil {
		return err
	}
	f, note := s.wait(Ran, &t)
	if f.outcome != "" {
		out.spot(f)
		out.Note = note
		return nil
	}
	if out.ran(&t); out.Outcome != Same || out.Hazard != "" {
		return nil
	}
	if f, note = s.wait(Alive, &t); f.outcome != "" {
		out.spot(f)
		out.Note = strings.TrimSpace("after the probe " + note)
		return nil
	}
	out.alive(&t)
	return nil
}
