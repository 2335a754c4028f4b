package booted

import (
	"bytes"
	"regexp"

	"kprobelab/internal/bounded"
)

// readiness finds out when the program of a session is ready, so that the workloads may start.
type readiness struct {
	yes bool
	// lines are the ends of stdout and stderr, from the beginning of a line on.
	lines [2][]byte
	// due is the time of the next look at the tasks, 0 for none; switches is their count of context switches at the
	// last look.
	due, switches uint64
	// timed: Session.For counts. over: the workloads have ended.
	timed, over bool
}

// sees looks for a line of the output that want matches.
func (r *readiness) sees(want *regexp.Regexp, fd int, b []byte) {
	if want == nil || r.yes {
		return
	}
	rest := append(r.lines[fd-1], b...)
	for more := true; more && !r.yes; {
		var line []byte
		line, rest, more = bytes.Cut(rest, []byte("\n"))
		r.yes = want.Match(line)
		if !more {
			rest = line
		}
	}
	r.lines[fd-1] = append([]byte(nil), rest[max(0, len(rest)-bounded.ReadyLine):]...)
}

// is reports whether the program is ready.
func (r *readiness) is(v *supervision, now uint64) (bool, error) {
	if r.yes || v.s.Ready != nil {
		r.due = 0
		return r.yes, nil
	}
	if now < r.due {
		return false, nil
	}
	switches, asleep, err := v.asleep()
	if err != nil {
		return false, err
	}
	r.yes = asleep && r.due != 0 && switches == r.switches
	r.due, r.switches = now+readyStep, switches
	if r.yes {
		r.due = 0
	}
	return r.yes, nil
}

// asleep reports whether the program and its children sleep until something happens, and how often they have run.
func (v *supervision) asleep() (switches uint64, asleep bool, err error) {
	tasks, err := v.k.Tasks()
	if err != nil {
		return 0, false, err
	}
	supervisor := 0
	for _, t := range tasks {
		if t.Addr == v.from.task {
			supervisor = t.PID
		}
	}
	asleep = true
	for _, t := range tasks {
		if t.Kernel || t.PID <= supervisor || t.State == "Z" || t.State == "X" {
			continue
		}
		switches += t.Switches
		asleep = asleep && t.State == "S"
	}
	return switches, asleep, nil
}
