package perfetto

import (
	"kprobelab/internal/userprobe"
	"kprobelab/x86"
)

// Thread says on whose track something is drawn.
type Thread struct {
	PID, TID int
	Comm     string
}

// userTrack holds the events that a thread's track has yet to draw. Slices of one track do not overlap, so the
// slice of a probed function begins when the hit at its entry has ended, and ends when the hit at its return
// has ended.
type userTrack struct {
	// hit names the open slice of a hit. copy is set while the slice of its copy is open.
	hit  string
	copy bool
	// then follows the end of the hit.
	then []*Event
}

func (h *Thread) event(now uint64, kind Kind, category, name string, args ...Arg) *Event {
	return &Event{Time: now, Kind: kind, PID: h.TID, Process: h.PID, Comm: h.Comm, ProcessName: h.Comm, Category: category, Name: name, Args: args}
}

const copySlice = "copy in the XOL area"

// userTrack is a thread's.
func (t *Timeline) userTrack(tid int) *userTrack {
	if t.users == nil {
		t.users = map[int]*userTrack{}
	}
	if t.users[tid] == nil {
		t.users[tid] = &userTrack{}
	}
	return t.users[tid]
}

// User draws a step of a uprobe's hit: the hit is a slice, and so is the time in the copy. returns are the
// events that wait for the return of the function at the probe, each a slice from its entry to its return.
func (t *Timeline) User(now uint64, h Thread, e *userprobe.Event, returns []string) {
	k := t.userTrack(h.TID)
	if e.Step == 1 {
		t.endHit(now, &h, k) // it had no end of its own
		k.hit = "hit of " + t.symbol(e.Addr)
		if e.Kind == userprobe.EventReturn {
			k.hit = "return of " + t.symbol(e.Addr)
		}
		t.emit(h.event(now, Begin, "uprobes", k.hit, Arg{Name: "addr", Value: Pointer(e.Addr)}))
	}
	switch e.Kind {
	case userprobe.EventCopy:
		k.copy = true
		t.emit(h.event(now, Begin, "uprobes", copySlice, Arg{Name: "slot", Value: Pointer(e.Slot)}))
		return
	case userprobe.EventStepped, userprobe.EventLostStep, userprobe.EventAborted:
		t.endCopy(now, &h, k)
	}
	t.emit(h.event(now, Instant, "uprobes", e.Kind.String(), Arg{Name: "ip", Value: t.symbol(x86.Addr(e.Regs.IP))}))
	switch e.Kind {
	case userprobe.EventInstance:
		for _, name := range returns {
			k.then = append(k.then, h.event(now, Begin, "uretprobes", name, Arg{Name: "addr", Value: Pointer(e.Addr)}))
		}
	case userprobe.EventUnwound:
		for i := range returns {
			k.then = append(k.then, h.event(now, End, "uretprobes", returns[len(returns)-1-i]))
		}
	case userprobe.EventResume, userprobe.EventReturned, userprobe.EventCallEnd, userprobe.EventAborted, userprobe.EventGone, userprobe.EventNoSlot:
		t.endHit(now, &h, k)
	}
}

func (t *Timeline) endCopy(now uint64, h *Thread, k *userTrack) {
	if k.copy {
		k.copy = false
		t.emit(h.event(now, End, "uprobes", copySlice))
	}
}

func (t *Timeline) endHit(now uint64, h *Thread, k *userTrack) {
	t.endCopy(now, h, k)
	if k.hit != "" {
		t.emit(h.event(now, End, "uprobes", k.hit))
		k.hit = ""
	}
	for _, e := range k.then {
		e.Time = now
		t.emit(e)
	}
	k.then = nil
}

// UserRecord draws a record of an event: an instant with its arguments, or of a return the end of
// the slice that began at the entry.
func (t *Timeline) UserRecord(now uint64, h Thread, group, name string, returned bool, args []Arg) {
	if !returned {
		t.emit(h.event(now, Instant, group, name, args...))
		return
	}
	k := t.userTrack(h.TID)
	k.then = append(k.then, h.event(now, End, "uretprobes", name, args...))
}
