package hazards

import (
	"encoding/json"
	"fmt"
	"time"

	"kprobelab/internal/qemu"
	"kprobelab/internal/qemu/frame"
)

// session speaks with a machine whose init tries points.
type session struct {
	r      *qemu.Running
	frames chan said
	oops   <-chan spotted
}

// said is a frame, or the error that there is none any more.
type said struct {
	name string
	data []byte
	err  error
}

func newSession(r *qemu.Running, s *spotter) *session {
	x := &session{r, make(chan said, 4), s.found}
	go func() {
		for {
			name, data, err := r.Frame()
			x.frames <- said{name, data, err}
			if err != nil {
				return
			}
		}
	}()
	return x
}

// When a machine that says nothing counts as hung. A workload takes about a second of
// the host's CPU time; the time by the clock says little where the host is busy.
const (
	look     = 300 * time.Millisecond
	asleep   = 5 // looks at which the CPU is halted with interrupts off
	maxSpent = 25 * time.Second
	maxTime  = 2 * time.Minute
)

// wait reads the frame with that name into t. The result is "" when it came, else how
// the machine ended, and what there is to say of it.
func (s *session) wait(want string, t *Tried) (f spotted, note string) {
	began := time.Now()
	spent, _ := s.r.Spent()
	sleeps := 0
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case f = <-s.oops:
			return f, ""
		case x := <-s.frames:
			switch {
			case x.err != nil:
				select {
				case f = <-s.oops: // it came just before
					return f, "the machine ended"
				default:
					return spotted{outcome: Panicked}, ""
				}
			case x.name == frame.Failed:
				return spotted{outcome: NotTried}, "init: " + string(x.data)
			case x.name == want:
				if err := json.Unmarshal(x.data, t); err != nil {
					return spotted{outcome: NotTried}, err.Error()
				}
				return spotted{}, ""
			}
		case <-tick.C:
			sleep, err := s.r.Asleep()
			if err != nil || !sleep {
				sleeps = 0
			} else if sleeps++; sleeps == asleep {
				return spotted{outcome: Hung}, "halted with interrupts off"
			}
			now, err := s.r.Spent()
			if err == nil && now-spent > maxSpent {
				return spotted{outcome: Hung}, fmt.Sprintf("no end after %s of CPU time", maxSpent)
			}
			if time.Since(began) > maxTime {
				return spotted{outcome: Hung}, fmt.Sprintf("nothing for %s", maxTime)
			}
		}
	}
}
