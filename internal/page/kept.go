package page

import (
	"bytes"
	"slices"

	"kprobelab/kimage"
)

const (
	// mostKept is the most views of a machine that are kept.
	mostKept = 128
	// backwards is the number of places that a replay for a step back keeps: the next steps back run nothing.
	backwards = 8
)

// kept has the last views of a machine, by place, so that a step back, and forward again, runs nothing.
type kept struct {
	img      *kimage.Image
	scenario Scenario
	views    map[spot]*View
	// order has the places from the oldest on.
	order []spot
}

// spot is a place in a run as it was asked for. The mode and the lead decide what is said of it.
type spot struct {
	schedule string
	sub      int
	by, lead string
}

// keep keeps a view.
func (k *kept) keep(img *kimage.Image, s Scenario, at spot, v *View) {
	if k.img != img || k.scenario != s {
		*k = kept{img: img, scenario: s, views: map[spot]*View{}}
	}
	if k.views[at] == nil {
		k.order = append(k.order, at)
	}
	k.views[at] = v
	if len(k.order) > mostKept {
		delete(k.views, k.order[0])
		k.order = slices.Delete(k.order, 0, 1)
	}
}

// recall answers a question about a place that was shown, in the run that is there. It returns nil if the machine has to run.
func (p *Page) recall(img *kimage.Image, q *watchQuestion, all []byte) *View {
	r := p.run
	if r == nil || q.Loose || p.kept.img != img || p.kept.scenario != q.Scenario || r.img != img || r.scenario != q.Scenario || !bytes.HasPrefix(r.steps, all) {
		return nil
	}
	n, sub := len(all), q.Sub
	if n > 0 && sub >= r.counts[n-1] {
		return nil
	}
	switch {
	case q.Move == "back" && sub >= -1:
		n, sub = r.earlier(n, q.By == byProtocol, sub)
	case q.Move != "":
		return nil
	}
	v := p.kept.views[q.spot(r.steps[:n], sub)]
	if v == nil {
		return nil
	}
	again := *v
	again.Moved = q.Move == "" || n != len(all) || sub != q.Sub
	again.Marks, again.Stale = r.track(q.Known, n)
	return &again
}

// spot names a place for a question.
func (q *watchQuestion) spot(steps []byte, sub int) spot {
	return spot{writeSchedule(steps), sub, q.By, q.Lead}
}

// back goes to the place before sub of the machine's last step. It runs from the beginning, and keeps the last places on the way.
func (p *Page) back(img *kimage.Image, q *watchQuestion, lead []byte, sub int) (at int, moved bool, err error) {
	type place struct{ n, sub int }
	protocol := q.By == byProtocol
	steps := slices.Clone(p.run.steps)
	here := place{len(steps), sub}
	places := []place{}
	for from := here; len(places) < backwards; {
		n, sub := p.run.earlier(from.n, protocol, from.sub)
		if (place{n, sub}) == from {
			break
		}
		from = place{n, sub}
		places = append(places, from)
	}
	if len(places) == 0 {
		return sub, false, nil
	}
	if to := places[0]; to.n == here.n {
		return to.sub, true, nil
	}
	if places[0].n == 0 {
		return places[0].sub, true, p.goTo(img, q.Scenario, nil)
	}
	for i, to := range slices.Backward(places) {
		if err := p.goTo(img, q.Scenario, steps[:to.n]); err != nil {
			return 0, false, err
		}
		if i == 0 {
			break
		}
		v, err := p.run.shown(q, lead, to.sub)
		if err != nil {
			return 0, false, err
		}
		p.kept.keep(img, q.Scenario, q.spot(steps[:to.n], to.sub), v)
	}
	return places[0].sub, true, nil
}

// shown is the view of a place of the last step, with what the question's mode and lead say of it.
func (r *run) shown(q *watchQuestion, lead []byte, sub int) (*View, error) {
	v, err := r.view(sub, true)
	if err != nil {
		return nil, err
	}
	protocol := q.By == byProtocol
	v.Did = r.did(protocol)
	if who, _ := r.turn(lead, protocol, sub); who != 0 {
		v.Next = string(who)
	}
	return v, nil
}
