package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
)

// limits bounds a command's time and output.
type limits struct {
	// output is the bound without --max-output: a script and a guest as run does, a list by the size of a kernel.
	output uint64
	// ends: it ends by itself once its context has: there is a mount, a guest or a connection to end first.
	ends bool
}

// limitsOf holds the limits of the commands. A command that is not listed, such as run, bounds its calls by flags of its own.
var limitsOf = map[string]limits{
	"stap": {output: bounded.Output}, "bpftrace": {output: bounded.Output}, "sample": {output: bounded.Output},
	"probe": {output: bounded.Listing}, "explore": {output: bounded.Listing}, "explain": {output: bounded.Listing}, "pack": {output: bounded.Listing},
	"check": {output: bounded.Listing}, "scan": {output: bounded.Listing}, "info": {output: bounded.Listing}, "symbols": {output: bounded.Listing},
	"hazards": {output: bounded.Listing}, "bench": {output: bounded.Listing}, "decode": {output: bounded.Listing}, "selfcheck": {output: bounded.Listing},
	"boot": {bounded.Output, true}, "mount": {bounded.Listing, true}, "serve": {bounded.Listing, true}, "kernels": {bounded.Listing, true},
}

// limited gives a command, and those in it, --timeout and --max-output for all that it does, unless it has its own.
func limited(t *term, c *cli.Command) {
	l, ok := limitsOf[c.Name]
	if !ok {
		return
	}
	var timeout time.Duration
	most := l.output
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
		if l.ends {
			ctx, t.ends = context.WithCancelCause(ctx)
		}
		t.limit(timeout, most)
		return ctx, nil
	}
	if do := c.Action; l.ends {
		c.Action = func(ctx context.Context, c *cli.Command) error {
			err := do(ctx, c)
			var f *failure
			if errors.As(context.Cause(ctx), &f) {
				t.unlimited()
				return f
			}
			return err
		}
	}
}

// limit ends the command when timeout has passed (0: no limit), or when most bytes are written to standard output or to
// standard error.
func (t *term) limit(timeout time.Duration, most uint64) {
	over := sync.OnceFunc(func() {
		t.end(fmt.Errorf("the output has reached --max-output %d, and the command had not ended", most))
	})
	t.written.most, t.writtenErr.most = most, most
	t.written.over, t.writtenErr.over = over, over
	if timeout > 0 {
		t.after(timeout, func() { t.end(fmt.Errorf("--timeout %s has passed, and the command had not ended", timeout)) })
	}
}

// unlimited lets the last sentence be printed.
func (t *term) unlimited() { t.writtenErr.most = 0 }

// endsWithin is the time in which a command ends its work after its limit.
const endsWithin = 10 * time.Second

// end ends the command: by its context, if it ends with it, or else the process, wherever it is: a call in the engine would
// not notice anything else.
func (t *term) end(err error) {
	failed := &failure{exitRefused, err}
	exit := func() {
		t.unlimited()
		t.exit(t.report(failed))
	}
	if t.ends == nil {
		exit()
		return
	}
	t.ends(failed)
	t.after(endsWithin, exit)
}

// after calls do after a time, unless the command has ended by then.
func (t *term) after(d time.Duration, do func()) {
	time.AfterFunc(d, func() {
		if !t.ended.Load() {
			do()
		}
	})
}
