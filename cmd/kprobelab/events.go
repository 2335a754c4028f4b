//go:build cgo && linux && amd64

package main

import (
	"fmt"
	"io/fs"

	"kprobelab/tracing"
)

// define writes the definitions to kprobe_events and enables them all.
func (r *runner) define(events []string) error {
	if len(events) == 0 {
		return nil
	}
	t, err := r.lab.Tracing(&tracing.Options{
		Record: r.rec.record(), Log: func(line string) { r.out.log("kernel", line) },
	})
	if err != nil {
		return usagef("-e: %w", err)
	}
	r.tracing = t
	r.rec.events(t)
	for _, e := range events {
		if err := t.Write("kprobe_events", e, true); err != nil {
			t.Close()
			r.tracing = nil // nothing was traced
			return &failure{exitRefused, fmt.Errorf("-e: %w", err)}
		}
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
	if err == nil {
		r.out.traced(string(text))
	}
	return err
}
