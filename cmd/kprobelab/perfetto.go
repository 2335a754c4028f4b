package main

import (
	"bufio"
	"errors"
	"strings"

	"kprobelab"
	"kprobelab/internal/perfetto"
	"kprobelab/internal/session"
	"kprobelab/kprobes"
	"kprobelab/tracing"
	"kprobelab/watch"
	"kprobelab/x86"
)

// recording is the file of --perfetto; nil where none is asked for.
type recording struct {
	f *outputFile
	// path is the file's name.
	path string
	w    *bufio.Writer
	tl   *perfetto.Timeline
	lab  *kprobelab.Lab
}

// record makes the file.
func record(path string) (*recording, error) {
	if path == "" {
		return nil, nil
	}
	f, err := createOutput(path)
	if err != nil {
		return nil, &failure{exitImage, err}
	}
	return &recording{f: f, path: path, w: bufio.NewWriter(f)}, nil
}

// start begins the recording, and draws every change of text.
func (r *recording) start(l *kprobelab.Lab) {
	if r == nil {
		return
	}
	r.lab = l
	r.begin(l.Image.Name(), l.Machine.Symbolize)
	if of := l.GuestTask(); of != nil {
		r.tl.Tasks(of)
	}
	l.Machine.OnText(
		func(at x86.Addr, n int) { r.tl.Poke(l.Machine.Now(), l.Machine.CPU(), at, n) },
		func(cpu int) { r.tl.Sync(l.Machine.Now(), cpu) },
	)
}

// begin makes the timeline, in the format that the file's name says.
func (r *recording) begin(name string, symbol func(x86.Addr) string) {
	if strings.HasSuffix(r.path, ".jsonl") {
		r.tl = perfetto.NewTimelineJSON(r.w, symbol)
	} else {
		r.tl = perfetto.NewTimeline(r.w, name, symbol)
	}
}

func (r *recording) step(e *kprobes.Event) {
	if r != nil {
		r.tl.Hit(r.lab.Machine.Now(), e)
	}
}

func (r *recording) watched(p *session.Planted, h *watch.Hit, regs *x86.PtRegs) {
	if r != nil {
		r.tl.Watched(watchedHit(p.Place, p.Watched, h, regs))
	}
}

func watchedHit(p watch.Place, w *watch.Watchpoint, h *watch.Hit, regs *x86.PtRegs) *perfetto.Watched {
	return &perfetto.Watched{
		Now: h.Now, CPU: h.CPU, Task: h.Task, Name: p.String(), Access: watch.Access(h.Kinds),
		Addr: w.Addr, IP: x86.Addr(regs.IP), Old: h.Old, New: h.New,
	}
}

// events has the events of tracing drawn; record is what its options need.
func (r *recording) events(t *tracing.Tracing) {
	if r != nil {
		r.tl.Events(t.EventOf)
	}
}

func (r *recording) record() func(*tracing.Record) {
	if r == nil {
		return nil
	}
	return r.tl.Record
}

// close writes what is left, whether the recording was started or not.
func (r *recording) close() error {
	if r == nil {
		return nil
	}
	var err error
	if r.tl != nil {
		err = r.tl.Close()
	}
	if err = r.f.done(errors.Join(err, r.w.Flush())); err != nil {
		return &failure{exitImage, err}
	}
	return nil
}
