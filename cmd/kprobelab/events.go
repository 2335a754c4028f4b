package main

import (
	"fmt"
	"io/fs"

	"kprobelab/tracing"
)

// define writes the definitions to kprobe_events, writes what is to be in other files,
// and enables all events.
func (r *runner) define(events, tracefs []string) error {
	if len(events)+len(tracefs) == 0 {
		return nil
	}
	writes, err := tracefsWrites(tracefs)
	if err != nil {
		return err
	}
	t, err := r.lab.Tracing(&tracing.Options{
		Record: r.rec.record(), Log: func(line string) { r.out.log("kernel", line) },
	})
	if err != nil {
		return usagef("-e: %w", err)
	}
	r.tracing = t
	r.rec.events(t)
	refused := func(flag string, err error) error {
		t.Close()
		r.tracing = nil // nothing was traced
		return &failure{exitRefused, fmt.Errorf("%s: %w", flag, err)}
	}
	for _, e := range events {
		if err := t.Write("kprobe_events", e, true); err != nil {
			return refused("-e", err)
		}
	}
	for _, w := range writes {
		if err := t.Write(w.File, w.Text, true); err != nil {
			return refused("--tracefs", err)
		}
	}
	if len(events) == 0 {
		return nil
	}
	return t.Write("events/enable", "1", true)
}

// traced prints the file trace, and removes the events.
func (r *runner) traced() error {
	if r.tracing == nil {
		return nil
	}
	defer r.tracing.Close()
	text, err := fs.ReadFile(r.tracing, "trace")
	switch {
	case err != nil:
	case r.traceOutput != "":
		err = writeOutput(r.traceOutput, text)
	default:
		r.out.traced(string(text))
	}
	return err
}
