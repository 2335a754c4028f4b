package page

import (
	"fmt"

	"kprobelab/kprobes"
)

// Mark is an event of a run on its timeline.
type Mark struct {
	// Step is the number of its step, from 0. Sub is its number in the step, -1 for the step's end.
	Step int `json:"step"`
	Sub  int `json:"sub"`
	// Kind is the mark's sign: register, unregister, queue, trap, handler, slot, detour, jump, write, sync, wait,
	// return, fault, other.
	Kind string `json:"kind"`
	Text string `json:"text"`
}

// Stale has the CPUs that may fetch bytes which memory no longer has, from the end of a step on.
type Stale struct {
	Step int    `json:"step"`
	CPUs string `json:"cpus"`
}

// Left is a part of a schedule for which there was nothing to do. It would have come before the step At.
type Left struct {
	At  int    `json:"at"`
	Who string `json:"who"`
	N   int    `json:"n"`
}

// hitMarks are the signs of the events of a hit; an event that is not here has the sign "other".
var hitMarks = map[kprobes.EventKind]string{
	kprobes.EventTrap: "trap", kprobes.EventJprobeReturn: "trap", kprobes.EventStepped: "trap", kprobes.EventPoke: "trap",
	kprobes.EventPre: "handler", kprobes.EventPost: "handler", kprobes.EventReturnHandler: "handler",
	kprobes.EventBoost: "slot", kprobes.EventStep: "slot", kprobes.EventEmulate: "slot",
	kprobes.EventDetour: "detour", kprobes.EventDetoured: "detour", kprobes.EventOptimized: "jump",
	kprobes.EventMissed: "missed", kprobes.EventNoInstance: "missed", kprobes.EventInNMI: "missed",
	kprobes.EventFault: "fault", kprobes.EventReturn: "return", kprobes.EventReturned: "return",
}

// optMarks are the signs of the optimizer's events.
var optMarks = map[kprobes.OptKind]string{
	kprobes.OptQueued: "queue", kprobes.OptQueuedUndo: "queue", kprobes.OptDequeued: "queue", kprobes.OptKept: "queue", kprobes.OptFreeing: "queue",
	kprobes.OptPokeInt3: "write", kprobes.OptPokeTail: "write", kprobes.OptPokeFirst: "write", kprobes.OptPokeStopped: "write", kprobes.OptDisarmed: "write",
	kprobes.OptPokeSync: "sync", kprobes.OptWait: "wait", kprobes.OptWaited: "wait", kprobes.OptOptimized: "jump",
}

// note puts the step that has just been taken on the timeline.
func (r *run) note(who byte) {
	step := len(r.steps) - 1
	for i := range r.moments {
		m := &r.moments[i]
		sign := m.sign
		if sign == "" {
			sign = "other"
		}
		r.marks = append(r.marks, Mark{step, i, sign, m.Text})
	}
	if cpu := int(who - 'a'); who >= 'a' && cpu < len(r.tasks) {
		t := r.tasks[cpu]
		switch n := len(t.Results()); {
		case t.Err() != nil:
			r.marks = append(r.marks, Mark{step, -1, "fault", fmt.Sprintf("failed: %v", t.Err())})
		case n > r.returned[cpu]:
			r.marks = append(r.marks, Mark{step, -1, "return", fmt.Sprintf("%s returned %d", r.calls[cpu][n-1].Symbol.Name, int64(t.Results()[n-1].Ret))})
			r.returned[cpu] = n
		}
	}
	if len(r.moments) == 0 && r.stale == "" {
		return
	}
	stale, text := "", string(r.text())
	for cpu := range r.tasks {
		if string(r.seen[cpu]) != text {
			stale += string('a' + byte(cpu))
		}
	}
	if stale != r.stale {
		r.stale = stale
		r.stales = append(r.stales, Stale{step, stale})
	}
}

// track returns the marks and the stale CPUs of the steps from the number known on, of the first n steps.
func (r *run) track(known, n int) (marks []Mark, stales []Stale) {
	marks, stales = []Mark{}, []Stale{}
	for _, m := range r.marks {
		if m.Step >= known && m.Step < n {
			marks = append(marks, m)
		}
	}
	for _, s := range r.stales {
		if s.Step >= known && s.Step < n {
			stales = append(stales, s)
		}
	}
	return marks, stales
}
