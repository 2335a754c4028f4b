package page

import (
	"bytes"
	"fmt"
	"sync"

	"kprobelab"
	"kprobelab/internal/bounded"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// watchQuestion requests a machine after the steps of a schedule or, with a move, after the move.
type watchQuestion struct {
	Scenario
	// identity names the image that has to be open; empty: the guest kernel.
	identity
	Schedule string `json:"schedule"`
	// Loose: steps of the schedule that have nothing to do are left out.
	Loose bool `json:"loose"`
	// Sub is the number of an event of the last step, -1 for the step's end.
	Sub int `json:"sub"`
	// Move is "", "forward" or "back"; By is "instruction" or "protocol".
	Move string `json:"move"`
	By   string `json:"by"`
	// Who takes the steps forward, as in a schedule; "" is everybody in turn.
	Who string `json:"who"`
	// Known is the number of steps whose timeline the page has.
	Known int `json:"known"`
	// Lead is a schedule that begins what everybody in turn do.
	Lead string `json:"lead"`
}

func (p *Page) watch(q watchQuestion, _ []byte) (*View, error) {
	if err := q.check(p.image); err != nil {
		return nil, err
	}
	img, err := p.named(q.Image)
	if err != nil {
		return nil, err
	}
	list, err := readSchedule(q.Schedule)
	if err != nil {
		return nil, err
	}
	lead, err := readSchedule(q.Lead)
	if err != nil {
		return nil, err
	}
	if v := p.recall(img, &q, steps(list)); v != nil {
		return v, nil
	}
	all, left := steps(list), []Left(nil)
	if q.Loose {
		if all, left, err = possible(img, q.Scenario, all); err != nil {
			return nil, err
		}
	}
	if err := p.goTo(img, q.Scenario, all); err != nil {
		return nil, err
	}
	protocol := q.By == byProtocol
	sub := q.Sub
	if sub < -1 || sub >= len(p.run.moments) {
		return nil, errRequest
	}
	moved := true
	switch q.Move {
	case "":
	case "forward":
		who, most := p.run.turn(steps(lead), protocol, sub)
		if q.Who != "" {
			who, most = q.Who[0], bounded.PageSteps
		}
		if len(q.Who) > 1 {
			return nil, errRequest
		}
		if moved = who != 0; moved {
			sub, moved, err = p.run.forward(protocol, most, who, sub)
		}
	case "back":
		sub, moved, err = p.back(img, &q, steps(lead), sub)
	default:
		err = errRequest
	}
	if err != nil {
		return nil, err
	}
	v, err := p.run.shown(&q, steps(lead), sub)
	if err != nil {
		return nil, err
	}
	p.kept.keep(img, q.Scenario, q.spot(p.run.steps, sub), v)
	answer := *v
	answer.Moved, answer.Left = moved, left
	answer.Marks, answer.Stale = p.run.track(q.Known, len(p.run.steps))
	return &answer, nil
}

// possible runs a schedule, and divides it into the steps that were taken and those for which there
// was nothing to do.
func possible(img *kimage.Image, s Scenario, all []byte) (taken []byte, left []Left, err error) {
	r, err := newRun(img, s)
	if err != nil {
		return nil, nil, err
	}
	defer r.lab.Close()
	r.unseen = true
	for _, who := range all {
		ran, err := r.step(who)
		if err != nil {
			return nil, nil, err
		}
		if ran {
			continue
		}
		if n := len(left); n > 0 && left[n-1].At == len(r.steps) && left[n-1].Who == string(who) {
			left[n-1].N++
		} else {
			left = append(left, Left{len(r.steps), string(who), 1})
		}
	}
	return r.steps, left, nil
}

// turn chooses the CPU that takes the next step when all step in turn, 0 if none can. It depends on
// the steps taken and on nothing else. most is the number of steps that the lead has there.
func (r *run) turn(lead []byte, protocol bool, sub int) (who byte, most int) {
	n := len(r.steps)
	switch {
	case protocol && r.inside(sub):
		return r.steps[n-1], bounded.PageSteps
	case n < len(lead) && bytes.HasPrefix(lead, r.steps):
		for lead = lead[n:]; most < len(lead) && lead[most] == lead[0]; most++ {
		}
		return lead[0], most
	case !r.registered && len(r.probes) > 0:
		return 'm', bounded.PageSteps
	}
	all := make([]byte, len(r.tasks)+1) // the CPUs, then the worker
	for i, t := range r.tasks {
		if !t.Done() {
			all[i] = 'a' + byte(i)
		}
	}
	if r.workerDue() {
		all[len(r.tasks)] = 'w'
	}
	last := len(r.tasks)
	for _, who := range r.steps {
		if who != 'm' && who != 'w' {
			last = int(who - 'a')
		} else if who == 'w' {
			last = len(r.tasks)
		}
	}
	for i := range all {
		if who := all[(last+1+i)%len(all)]; who != 0 {
			return who, bounded.PageSteps
		}
	}
	return 0, 0
}

// did says in a sentence what the last step did, if it has no event; by the protocol, what all steps
// since the last event did.
func (r *run) did(protocol bool) string {
	k := len(r.steps)
	if k == 0 || len(r.moments) > 0 {
		return ""
	}
	who := r.steps[k-1]
	if who < 'a' || int(who-'a') >= len(r.tasks) {
		return "The " + nameOf(who) + " has done nothing that is shown here."
	}
	n := 1
	for protocol && n < k && r.steps[k-1-n] == who && r.counts[k-1-n] == 0 {
		n++
	}
	cpu := int(who - 'a')
	text := fmt.Sprintf("%s ran %d instructions", nameOf(who), n)
	if n == 1 {
		at := r.calls[cpu][0].Symbol.Addr
		if r.before.has[cpu] {
			at = x86.Addr(r.before.regs[cpu].IP)
		}
		text = fmt.Sprintf("%s executed %s at %s", nameOf(who), r.insn(at), r.symbol(at))
		if len(r.read(at, 1)) == 0 {
			text = fmt.Sprintf("%s went to %s, where there is no memory", nameOf(who), r.symbol(at))
		}
		if r.underJump(at) && !r.probed(at) && r.changed(at) {
			text = fmt.Sprintf("%s executed % x at %s, the inside of the jump", nameOf(who), r.read(at, 2), r.symbol(at))
		}
	}
	switch t := r.tasks[cpu]; {
	case t.Err() != nil:
		return text + fmt.Sprintf(", and failed: %v. This is an oops.", t.Err())
	case t.Done():
		return text + " and returned " + r.results(cpu) + "."
	}
	return text + "."
}

// changed: the watched byte differs from the image's.
func (r *run) changed(a x86.Addr) bool {
	var b [1]byte
	return r.img.CodeAt(a, b[:]) == 1 && string(r.read(a, 1)) != string(b[:])
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

// forward goes on: by an instruction, or to the next event of the protocol, at most this many steps. If another one than who
// took the last step, that step is at its end first.
func (r *run) forward(protocol bool, most int, who byte, sub int) (at int, moved bool, err error) {
	switch {
	case protocol && r.inside(sub) && who == r.steps[len(r.steps)-1]:
		return sub + 1, true, nil
	case !protocol && sub >= 0 && who == r.steps[len(r.steps)-1]:
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
		case most == 1:
			return -1, true, nil
		}
		moved = true
		most--
	}
}

// inside: the last step has events after the one that is shown.
func (r *run) inside(sub int) bool { return sub >= 0 && sub+1 < len(r.moments) }

// earlier returns the number of steps one instruction or one event earlier than the place sub of step n, and the
// index of that step's event that is then shown.
func (r *run) earlier(n int, protocol bool, sub int) (before, at int) {
	switch {
	case n == 0:
		return 0, -1
	case !protocol:
		return n - 1, -1
	case sub > 0:
		return n, sub - 1
	case sub < 0 && r.counts[n-1] > 0:
		return n, r.counts[n-1] - 1
	}
	for n--; n > 0; n-- {
		if c := r.counts[n-1]; c > 0 {
			return n, c - 1
		}
	}
	return 0, -1
}
