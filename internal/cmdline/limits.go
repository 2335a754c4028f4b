package cmdline

import (
	"context"
	"errors"
	"time"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/terminal"
)

// Limits bounds a command's time and output.
type Limits struct {
	// Output is the bound without --max-output.
	Output uint64
	// Ends: the command ends by itself once its context has; it has something to end first.
	Ends bool
}

// Apply gives a command and its subcommands --timeout and --max-output, unless they have flags of their own.
func (l Limits) Apply(t *terminal.Term, c *cli.Command) {
	var timeout time.Duration
	most := l.Output
	if !hasFlag(c, "timeout") {
		c.Flags = append(c.Flags, &cli.DurationFlag{Name: "timeout", Destination: &timeout, HideDefault: true,
			Usage: "end the command after this much real `TIME`, as in 10s (not by default)"})
	}
	if !hasFlag(c, "max-output") {
		c.Flags = append(c.Flags, &cli.Uint64Flag{Name: "max-output", Value: most, Destination: &most, Usage: "end the command once it has printed this many `BYTES`"})
	}
	c.Before = func(ctx context.Context, _ *cli.Command) (context.Context, error) {
		if err := NotNegative(timeout); err != nil {
			return ctx, err
		}
		if l.Ends {
			var cancel context.CancelCauseFunc
			ctx, cancel = context.WithCancelCause(ctx)
			t.EndBy(cancel)
		}
		t.Limit(timeout, most)
		return ctx, nil
	}
	if do := c.Action; l.Ends {
		c.Action = func(ctx context.Context, c *cli.Command) error {
			err := do(ctx, c)
			var limit *terminal.LimitError
			if errors.As(context.Cause(ctx), &limit) {
				t.Unlimited()
				return limit
			}
			return err
		}
	}
}

// NotNegative refuses a --timeout below zero.
func NotNegative(timeout time.Duration) error {
	if timeout < 0 {
		return Usagef("--timeout %s: a time cannot be negative", timeout)
	}
	return nil
}
