package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
)

// outputOf bounds what a command prints: a script as run does, a list by the size of a kernel.
var outputOf = map[string]uint64{
	"stap": bounded.Output, "bpftrace": bounded.Output, "sample": bounded.Output,
	"probe": bounded.Listing, "explore": bounded.Listing, "explain": bounded.Listing, "pack": bounded.Listing, "check": bounded.Listing,
	"scan": bounded.Listing, "info": bounded.Listing, "symbols": bounded.Listing, "hazards": bounded.Listing, "bench": bounded.Listing,
}

// limited gives a command --timeout and --max-output for all that it does, unless it has its own.
func limited(t *term, c *cli.Command) {
	most, ok := outputOf[c.Name]
	if !ok {
		return
	}
	var timeout time.Duration
	has := func(name string) bool {
		return slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return slices.Contains(f.Names(), name) })
	}
	if !has("timeout") {
		c.Flags = append(c.Flags, &cli.DurationFlag{Name: "timeout", Destination: &timeout, HideDefault: true,
			Usage: "end the command after this much real `TIME`, as in 10s (not by default)"})
	}
	if !has("max-output") {
		c.Flags = append(c.Flags, &cli.Uint64Flag{Name: "max-output", Value: most, Destination: &most, Usage: "end the command once it has printed this many `BYTES`"})
	}
	c.Before = func(ctx context.Context, _ *cli.Command) (context.Context, error) {
		if err := notNegative(timeout); err != nil {
			return ctx, err
		}
		t.limit(timeout, most)
		return ctx, nil
	}
}

// limit ends the process after a time, 0 for none, or once so many bytes are printed.
func (t *term) limit(timeout time.Duration, most uint64) {
	t.written.most = most
	t.written.over = t.overOutput
	if timeout > 0 {
		time.AfterFunc(timeout, func() { t.end(fmt.Errorf("--timeout %s has passed, and the command had not ended", timeout)) })
	}
}

func (t *term) overOutput() {
	t.end(fmt.Errorf("the output has reached --max-output %d, and the command had not ended", t.written.most))
}

// end ends the process, wherever it is: a call in the engine would not notice anything else.
func (t *term) end(err error) { t.exit(t.report(&failure{exitRefused, err})) }
