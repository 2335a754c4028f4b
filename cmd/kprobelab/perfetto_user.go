package main

import (
	"kprobelab/internal/perfetto"
	"kprobelab/internal/process"
	"kprobelab/internal/userevent"
	"kprobelab/internal/userprobe"
	"kprobelab/watch"
	"kprobelab/x86"
)

// userRecording draws the hits of a program's uprobes.
type userRecording struct {
	tl *perfetto.Timeline
	r  *userRun
}

// program begins the recording of a program without a kernel.
func (r *recording) program(run *userRun, name string, places *userPlaces) *userRecording {
	r.begin(name, places.place)
	return &userRecording{tl: r.tl, r: run}
}

func thread(p *process.Process) perfetto.Thread {
	return perfetto.Thread{PID: p.PID(), TID: p.TID(), Comm: p.Comm()}
}

func (u *userRecording) step(e *userprobe.Event) {
	var returns []string
	for _, of := range u.r.trace.Events() {
		if e.File != nil && of.Return && of.At(e.File, e.Offset) {
			returns = append(returns, of.Event())
		}
	}
	u.tl.User(u.r.p.Now(), thread(u.r.p), e, returns)
}

func (u *userRecording) record(h *userevent.Hit) {
	args := []perfetto.Arg{{Name: "addr", Value: perfetto.Pointer(h.At)}}
	if h.Event.Return {
		args = append(args, perfetto.Arg{Name: "ip", Value: perfetto.Pointer(h.Return)})
	}
	for i, value := range h.Args {
		args = append(args, perfetto.Arg{Name: h.Event.Args[i].Name, Value: value})
	}
	u.tl.UserRecord(h.Time, thread(u.r.p), h.Event.Group, h.Event.Event(), h.Event.Return, args)
}

func (u *userRecording) watched(w *userWatch, h *watch.Hit, regs *x86.PtRegs) {
	u.tl.UserWatched(watchedHit(w.Place, w.Watchpoint, h, regs), thread(u.r.p))
}
