package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/urfave/cli/v3"

	"kprobelab/internal/bounded"
	"kprobelab/internal/mailbox"
	"kprobelab/run"
	"kprobelab/run/matrix"
)

// matrix has the plan done on each kernel, and prints what the kernels have in common and what not. The first signal ends the
// programs on all kernels, the second one kprobelab.
func (p *execDoor) matrix(ctx context.Context, t *term, c *cli.Command, list []string) error {
	if len(list) == 0 {
		list = []string{"newest"}
	}
	m, err := p.runs(c, list)
	if err != nil {
		return err
	}
	form := matrix.Form{Program: mailbox.Line(c.Args().Slice()), JSON: p.json}
	out, err := t.shard(p.part, list, "kernels", form)
	if err != nil {
		return err
	}
	m.Take(p.part)
	for _, j := range p.Jobs {
		if j.Host != nil {
			if j.Host.Stdin, err = programInput(p.stdin, bounded.GuestBytes); err != nil {
				return err
			}
		}
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	var finding sync.Mutex
	plan := matrix.Plans(&p.Kernel)
	m.Run(ctx, func(ctx context.Context, cell *matrix.Cell) {
		finding.Lock()
		word := cell.Kernel
		if c.IsSet("repeat") {
			word = list[0]
		}
		dump, err := t.bootedKernel(ctx, c, word)
		finding.Unlock()
		to := newTerm(&cell.Stdout, &cell.Stderr, t.args...)
		if err == nil {
			err = p.inMatrix(to, c, cell, dump, plan(ctx, cell), uint64(len(list)))
		}
		if exit := (*run.ExitError)(nil); errors.As(err, &exit) && !p.exits {
			cell.Code = exit.Code
			return
		}
		cell.Code, cell.Err = to.report(err), err
	})
	if out != nil && ctx.Err() == nil {
		return m.WriteShard(out)
	}
	code, err := m.Show(form, &matrix.Output{Out: t.Out, Err: t.Err, RawOut: t.RawOut, RawErr: t.RawErr, Colour: bool(t.OutStyle), JUnit: p.junit})
	if err == nil && ctx.Err() != nil {
		code = 128 + int(syscall.SIGINT)
	}
	return ended(code, err)
}

// runs are the cells of the matrix: the kernels, or the repeats on one kernel.
func (p *execDoor) runs(c *cli.Command, list []string) (*matrix.Matrix, error) {
	if !c.IsSet("repeat") {
		m, err := matrix.New(list)
		if err != nil {
			err = usagef("--kernel: %w", err)
		}
		return m, err
	}
	if len(list) > 1 || len(p.host.Outs) > 0 || p.host.Core+p.perfetto+p.film+p.traceOutput != "" {
		return nil, usagef("--repeat takes one kernel and leaves no files: --seed runs one of the repeats again")
	}
	m, err := matrix.Repeat(list[0], p.repeat, p.Seed, c.IsSet("seed"))
	if err != nil {
		err = usagef("--repeat: %w", err)
	}
	return m, err
}

// inMatrix is the run on one kernel of a matrix.
func (p *execDoor) inMatrix(t *term, c *cli.Command, cell *matrix.Cell, dump string, plan *run.Kernel, kernels uint64) error {
	img, err := openImage(t, c, dump)
	if err != nil {
		return err
	}
	cell.Release = img.Release()
	s := p.shown
	s.maxOutput, s.json = p.maxOutput/kernels, false
	s.perfetto, s.film, s.traceOutput = cell.Named(p.perfetto), cell.Named(p.film), cell.Named(p.traceOutput)
	plan.Steps, plan.Records, plan.Trace = p.inSteps(), s.perfetto != "", s.trace()
	o := &run.TextOptions{Exits: p.exits, Log: p.log(t)}
	return s.printed(t, o, func(to run.Sink) error {
		if p.json {
			to = run.Tee(to, cell.Records(s.maxOutput))
		}
		return plan.Run(img, to)
	})
}
