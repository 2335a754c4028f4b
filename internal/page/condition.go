package page

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// Condition is about the state of a machine. All parts that are there have to hold.
type Condition struct {
	// CPU is the processor of At, InSlot, Returned and Failed, 0 if it is missing. At is its ip as the page shows it, of a
	// handler's registers in a handler.
	CPU      int    `json:"cpu,omitempty"`
	At       string `json:"at,omitempty"`
	InSlot   *bool  `json:"in_slot,omitempty"`
	Returned *int64 `json:"returned,omitempty"`
	// Ended: all calls of the processor have returned, or failed.
	Ended  *bool `json:"ended,omitempty"`
	Failed *bool `json:"failed,omitempty"`
	// Probe numbers the probe of State, Queue, Hits and Missed, from 1. State is "int3", "jump", "ftrace" or "none".
	Probe  int     `json:"probe,omitempty"`
	State  string  `json:"state,omitempty"`
	Queue  *string `json:"queue,omitempty"`
	Hits   *int    `json:"hits,omitempty"`
	Missed *uint64 `json:"missed,omitempty"`
	// Bytes are in memory at Place.
	Place string `json:"place,omitempty"`
	Bytes string `json:"bytes,omitempty"`
	// Happened is the kind of an event of a hit, as trap or pre, that has happened; with Times, so often.
	Happened string `json:"happened,omitempty"`
	Times    *int   `json:"times,omitempty"`
	// Steps: at least so many steps were taken.
	Steps int `json:"steps,omitempty"`
}

func (c *Condition) empty() bool { return reflect.ValueOf(*c).IsZero() }

// player plays a machine as the page's buttons do, and notes the events.
type player struct {
	page *Page
	ask  watchQuestion
	view *View
	sub  int
	// events are the kinds of the hits' events so far, "" for other events.
	events  []string
	presses int
}

// newPlayer makes the machine, after the steps of start.
func newPlayer(s Scenario, by, start, lead string) (*player, error) {
	p := &player{page: &Page{}, ask: watchQuestion{Scenario: s, By: by, Sub: -1, Lead: lead}, sub: -1}
	list, err := readSchedule(start)
	if err != nil {
		return nil, fmt.Errorf("\"start\" is %q: it is no schedule, such as ma2w", start)
	}
	img, err := guest()
	if err != nil {
		return nil, err
	}
	r, err := newRun(img, s)
	if err != nil {
		return nil, err
	}
	p.page.run = r
	all := steps(list)
	for n, who := range all {
		if r.unseen = n < len(all)-1; !r.unseen && n > 0 {
			r.now = r.capture("", "")
		}
		ran, err := r.step(who)
		if err == nil && !ran {
			err = errRequest
		}
		if err != nil {
			p.close()
			return nil, err
		}
		p.note(r.moments)
	}
	p.ask.Schedule = writeSchedule(all)
	if p.view, err = p.page.watch(p.ask, nil); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

func (p *player) close() {
	if p.page.run != nil {
		p.page.run.lab.Close()
		p.page.run = nil
	}
}

func (p *player) note(list []moment) {
	for _, m := range list {
		kind := ""
		if m.hit {
			kind = m.kind.String()
		}
		p.events = append(p.events, kind)
	}
}

// forward presses Forward.
func (p *player) forward() (moved bool, err error) {
	q := p.ask
	q.Schedule, q.Sub, q.Move = p.view.Schedule, p.view.Sub, "forward"
	if p.view, err = p.page.watch(q, nil); err != nil || !p.view.Moved {
		return false, err
	}
	p.presses++
	p.sub = p.view.Sub
	switch list := p.page.run.moments; {
	case p.sub >= 0:
		p.note(list[p.sub : p.sub+1])
	case p.view.Schedule != q.Schedule:
		p.note(list)
	}
	return true, nil
}

// holds asks the machine.
func (p *player) holds(c *Condition) bool {
	r := p.page.run
	now := &r.now
	if p.sub >= 0 {
		now = &r.moments[p.sub]
	}
	return len(r.steps) >= c.Steps && r.cpuHolds(now, c) && r.probeHolds(now, c) && r.bytesHold(now, c) && p.happened(c)
}

func (p *player) happened(c *Condition) bool {
	if c.Happened == "" {
		return true
	}
	n := 0
	for _, kind := range p.events {
		if kind == c.Happened {
			n++
		}
	}
	if c.Times != nil {
		return n == *c.Times
	}
	return n > 0
}

func (r *run) cpuHolds(now *moment, c *Condition) bool {
	if c.CPU < 0 || c.CPU >= len(r.tasks) {
		return false
	}
	t := r.tasks[c.CPU]
	ip := x86.Addr(now.regs[c.CPU].IP)
	switch {
	case c.At != "" && (!now.has[c.CPU] || r.symbol(ip) != c.At):
		return false
	case c.InSlot != nil && *c.InSlot != (now.has[c.CPU] && slices.ContainsFunc(now.pieces, func(p piece) bool {
		return p.kind == "slot" && ip.In(p.at, p.at.Add(int64(len(p.code))))
	})):
		return false
	case c.Failed != nil && *c.Failed != (t.Err() != nil):
		return false
	case c.Ended != nil && *c.Ended != t.Done():
		return false
	case c.Returned != nil:
		list := t.Results()
		return len(list) > 0 && int64(list[len(list)-1].Ret) == *c.Returned
	}
	return true
}

func (r *run) probeHolds(now *moment, c *Condition) bool {
	n := max(c.Probe, 1) - 1
	if c.State == "" && c.Queue == nil && c.Hits == nil && c.Missed == nil {
		return true
	}
	if n >= len(now.probes) {
		return false
	}
	p, s := r.probes[n], now.probes[n]
	queue := ""
	if p.at() != 0 {
		queue = r.lab.Kprobes.Queue(p.at())
	}
	switch {
	case c.State != "" && !strings.HasPrefix(s.State, states[c.State]):
		return false
	case c.Queue != nil && queue != *c.Queue:
		return false
	case c.Hits != nil && s.Hits != *c.Hits:
		return false
	}
	return c.Missed == nil || s.Missed == *c.Missed
}

// states are the beginnings of what the page says of a probe.
var states = map[string]string{
	"int3": "an int3", "jump": "a jump", "ftrace": "called by the function tracer", "none": "not registered",
}

func (r *run) bytesHold(now *moment, c *Condition) bool {
	if c.Bytes == "" {
		return true
	}
	want := bytes.ReplaceAll([]byte(c.Bytes), []byte(" "), nil)
	off := 0
	for _, w := range r.watched {
		for i := range int(w.Len()) {
			if r.symbol(w.Start.Add(int64(i))) == c.Place {
				end := min(off+i+len(want)/2, len(now.text))
				return fmt.Sprintf("%x", now.text[off+i:end]) == string(want)
			}
		}
		off += int(w.Len())
	}
	return false
}

// wrong says what is wrong with the words of a condition, "" for nothing.
func (c *Condition) wrong() string {
	kinds := []string{}
	for k := range kprobes.NumEventKinds {
		kinds = append(kinds, k.String())
	}
	switch {
	case c.Happened != "" && !slices.Contains(kinds, c.Happened):
		return fmt.Sprintf("\"happened\" is %q: events are %s", c.Happened, strings.Join(slices.Compact(kinds), ", "))
	case c.Times != nil && c.Happened == "":
		return "\"times\" goes with \"happened\""
	case c.State != "" && states[c.State] == "":
		return fmt.Sprintf("\"state\" is %q: it is int3, jump, ftrace or none", c.State)
	case (c.Bytes == "") != (c.Place == ""):
		return "\"bytes\" and \"place\" go together"
	}
	return ""
}
