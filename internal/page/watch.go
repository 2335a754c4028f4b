package page

import (
	"bytes"
	"slices"
	"sync"

	"kprobelab"
	"kprobelab/kimage"
)

// watchQuestion requests a machine after the steps of a schedule or, with a move, after the move.
type watchQuestion struct {
	Scenario
	// Image names the image that has to be open; empty: the guest kernel.
	Image    string `json:"image"`
	Schedule string `json:"schedule"`
	// Sub is the number of an event of the last step, -1 for the step's end.
	Sub int `json:"sub"`
	// Move is "", "forward" or "back"; By is "instruction" or "protocol".
	Move string `json:"move"`
	By   string `json:"by"`
	// Who takes the steps forward, as in a schedule.
	Who string `json:"who"`
}

func (p *Page) watch(q watchQuestion, _ []byte) (*View, error) {
	img, err := p.named(q.Image)
	if err != nil {
		return nil, err
	}
	list, err := readSchedule(q.Schedule)
	if err != nil {
		return nil, err
	}
	if err := p.goTo(img, q.Scenario, steps(list)); err != nil {
		return nil, err
	}
	sub := q.Sub
	if sub < -1 || sub >= len(p.run.moments) {
		return nil, errRequest
	}
	moved := true
	switch q.Move {
	case "":
	case "forward":
		if len(q.Who) != 1 {
			return nil, errRequest
		}
		sub, moved, err = p.run.forward(q.By == "protocol", q.Who[0], sub)
	case "back":
		n, at := p.run.earlier(q.By == "protocol", sub)
		moved = n != len(p.run.steps) || at != sub
		sub, err = at, p.goTo(img, q.Scenario, slices.Clone(p.run.steps[:n]))
	default:
		err = errRequest
	}
	if err != nil {
		return nil, err
	}
	return p.run.view(sub, moved)
}

// named returns the open image of a name, the guest kernel for "".
func (p *Page) named(name string) (*kimage.Image, error) {
	if p.image != nil && p.image.name == name {
		return p.image.img, nil
	}
	if name == "" {
		return guest()
	}
	_, err := p.open(openQuestion{Name: name}, nil)
	return nil, err
}

// guest is the guest kernel, opened once.
var guest = sync.OnceValues(func() (*kimage.Image, error) { return kprobelab.OpenImage("", nil) })

// goTo makes p.run the scenario's machine after these steps.
func (p *Page) goTo(img *kimage.Image, s Scenario, all []byte) error {
	r := p.run
	if r == nil || r.img != img || r.scenario != s || !bytes.HasPrefix(all, r.steps) {
		made, err := newRun(img, s)
		if err != nil {
			return err
		}
		if r != nil {
			if r.img == img && r.scenario == s {
				made.original = r.original
			}
			r.lab.Close()
		}
		p.run, r = made, made
	}
	if err := r.replay(all[len(r.steps):]); err != nil {
		p.run = nil // it has stopped somewhere on the way
		r.lab.Close()
		return err
	}
	return nil
}

// forward goes on: by an instruction, or to the next event of the protocol. If another one than who
// took the last step, that step is at its end first.
func (r *run) forward(protocol bool, who byte, sub int) (at int, moved bool, err error) {
	switch {
	case protocol && r.inside(sub) && who == r.steps[len(r.steps)-1]:
		return sub + 1, true, nil
	case !protocol && sub >= 0:
		return -1, true, nil
	}
	for {
		ran, err := r.step(who)
		switch {
		case err != nil && !moved:
			return sub, false, err
		case err != nil || !ran:
			if moved {
				sub = -1
			}
			return sub, moved, nil
		case !protocol:
			return -1, true, nil
		case len(r.moments) > 0:
			return 0, true, nil
		}
		moved = true
	}
}

// inside: the last step has events after the one that is shown.
func (r *run) inside(sub int) bool { return sub >= 0 && sub+1 < len(r.moments) }

// earlier returns the number of steps one instruction or one event earlier, and the
// index of the last step's event that is then shown.
func (r *run) earlier(protocol bool, sub int) (n, at int) {
	n = len(r.steps)
	switch {
	case n == 0:
		return 0, -1
	case !protocol:
		return n - 1, -1
	case sub > 0:
		return n, sub - 1
	case sub < 0 && len(r.moments) > 0:
		return n, len(r.moments) - 1
	}
	for n--; n > 0; n-- {
		if c := r.counts[n-1]; c > 0 {
			return n, c - 1
		}
	}
	return 0, -1
}
