package main

import (
	"errors"
	"fmt"
	"strings"

	"kprobelab/run"
)

// printing is a sink that prints.
type printing interface {
	run.Sink
	Buffered() int
	Flush() error
}

// text says how a run is shown to people.
func (p *plan) text(t *term) *run.TextOptions {
	o := &run.TextOptions{Colour: bool(t.outStyle), Steps: p.steps, Tasks: len(p.Tasks) > 0, Out: t.rawOut, Err: t.rawErr, Exits: true}
	if p.wantsProgram() {
		o.Log, o.Exits = t.err, false
	}
	return o
}

// printed has a run done, and what happens printed and recorded.
func (p *plan) printed(t *term, text printing, do func(run.Sink) error) (err error) {
	out := text
	if p.json {
		out = run.NewJSON(t.out)
	}
	p.Steps = p.steps || p.json || p.perfetto != ""
	if p.traceOutput != "" {
		p.Trace = p.writeTrace
	}
	printed := func() uint64 { return uint64(out.Buffered()) + t.written.n + t.writtenErr.n }
	to := run.Capped(out, p.maxOutput, printed)
	if p.perfetto != "" {
		rec, err := record(p.perfetto)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, rec.close()) }()
		p.Records = true
		to = run.Tee(rec.to, to)
	}
	err = do(run.Func(func(e run.Event) error {
		warnOf(t, e)
		return to.Put(e)
	}))
	if failed := out.Flush(); failed != nil {
		if exit := (*run.ExitError)(nil); errors.As(err, &exit) {
			err = nil // a program's exit code says nothing about the output
		}
		return errors.Join(err, failed)
	}
	return err
}

func (p *plan) writeTrace(text string) error {
	if err := writeOutput(p.traceOutput, []byte(text)); err != nil {
		return &failure{exitImage, err}
	}
	return nil
}

// warnOf says on standard error what a uprobe does although the kernel accepts it, and what the kernel says of one that it
// refuses.
func warnOf(t *term, e run.Event) {
	switch e := e.(type) {
	case run.Planted:
		if p := &e.Probe; p.Hazard != "" {
			fmt.Fprintf(t.err, "%s %s: %s: %s\n", t.errStyle.Red("warning:"), strings.ReplaceAll(p.Definition, "\n", "; "), p.Hazard, p.Hazard.Means())
		}
	case run.RefusedProbe:
		if e.Log != "" {
			fmt.Fprintln(t.err, e.Log)
		}
	}
}

// recording is the file of --perfetto.
type recording struct {
	f  *outputFile
	to *run.Perfetto
}

// record makes the file, in the format that its name says.
func record(path string) (*recording, error) {
	f, err := createOutput(path)
	if err != nil {
		return nil, &failure{exitImage, err}
	}
	return &recording{f: f, to: run.NewPerfetto(f, strings.HasSuffix(path, ".jsonl"))}, nil
}

// close writes what is left, whether the run was started or not.
func (r *recording) close() error {
	if err := r.f.done(r.to.Close()); err != nil {
		return &failure{exitImage, err}
	}
	return nil
}
