package boot

import (
	"context"
	"time"

	"kprobelab/booted"
)

// Plan is a boot and the actions on the kernel, in this order.
type Plan struct {
	Options
	// Modules are loaded when the kernel is at its stop point, and Tasks started and left running.
	Modules []*Module
	Tasks   []*booted.Program
	// AtStop, if not nil, is called then.
	AtStop func(d *Done)
	// Dump, if not nil, is a dump of the machine in that state.
	Dump *Dump
	// Exec, if not nil, is run to its end, after Definitions were written to kprobe_events, Writes to the files of
	// tracing, and the events enabled.
	Exec        *booted.Program
	Definitions string
	Writes      []TraceWrite
}

// Done is the result of a Plan.
type Done struct {
	// Slide is the distance by which KASLR has moved the kernel.
	Slide int64
	// Boot is the time to the stop point, Save the time of writing the dump.
	Boot, Save time.Duration
	// Saved is nil without a dump, Exit without a program.
	Saved *Saved
	Exit  *Exit
	// Trace is the file trace after the program.
	Trace string
}

// Run boots the kernel and carries out the plan. Its errors are Boot's, and a *RefusedError, an
// ErrDefinition or an ErrTraceWrite for a refusal by the kernel.
func (p *Plan) Run(ctx context.Context) (*Done, error) {
	d := &Done{}
	began := time.Now()
	err := Boot(ctx, &p.Options, func(g *Guest) error {
		if err := p.prepare(g); err != nil {
			return err
		}
		d.Boot, d.Slide = time.Since(began), g.Slide
		if p.AtStop != nil {
			p.AtStop(d)
		}
		if err := p.save(g, d); err != nil {
			return err
		}
		return p.exec(g, d)
	})
	return d, err
}

func (p *Plan) prepare(g *Guest) error {
	for _, m := range p.Modules {
		if err := g.Load(m); err != nil {
			return err
		}
	}
	for _, task := range p.Tasks {
		if err := g.Start(task); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) save(g *Guest, d *Done) (err error) {
	if p.Dump == nil {
		return nil
	}
	start := time.Now()
	d.Saved, err = g.Save(p.Dump)
	d.Save = time.Since(start)
	return err
}

func (p *Plan) exec(g *Guest, d *Done) error {
	if p.Exec == nil {
		return nil
	}
	if p.Definitions != "" {
		if err := g.Trace(p.Definitions, p.Writes); err != nil {
			return err
		}
	}
	exit, err := g.Exec(p.Exec)
	if err != nil {
		return err
	}
	d.Exit = &exit
	if p.Definitions != "" {
		d.Trace, err = g.Traced()
	}
	return err
}
