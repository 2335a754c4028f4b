package main

import (
	"bufio"
	"errors"

	"kprobelab"
	"kprobelab/internal/colour"
	"kprobelab/internal/sample/module"
	"kprobelab/kimage"
	"kprobelab/run"
)

var samples = map[string]module.Sample{
	"kprobe": module.Kprobe, "kretprobe": module.Kretprobe, "jprobe": module.Jprobe,
	"article kprobe": module.ArticleKprobe, "article jprobe": module.ArticleJprobe,
	"article kretprobe": module.ArticleKretprobe,
}

// sampleBudget is in instructions: all of the most tasks' most calls fit.
const sampleBudget = 1_000_000_000

func (r *sampleRun) execute(t *term, img *kimage.Image) (err error) {
	l, err := kprobelab.New(img, &kprobelab.Options{CPUs: r.cpus, Seed: r.seed, Budget: sampleBudget})
	if err != nil {
		return run.MachineError(img, err)
	}
	defer l.Close()
	w := bufio.NewWriter(t.Out)
	say := func(e module.Event) { sayLine(w, t.OutStyle, e) }
	if r.json {
		o := run.NewJSON(w)
		defer func() { err = errors.Join(err, o.Flush()) }()
		say = func(e module.Event) { o.Write(sampleRecord(e)) }
	}
	err = samples[r.name](l, &module.Options{
		Symbol: r.symbol, MaxActive: r.maxActive, Tasks: r.tasks, Calls: r.calls, Seed: r.seed,
	}, say)
	if err != nil {
		err = fail(exitRefused, run.OneLine(err))
	}
	return errors.Join(err, w.Flush())
}

// sayLine writes an event as the kernel's log has it.
func sayLine(w *bufio.Writer, s colour.Style, e module.Event) {
	if e.Line == "" {
		return
	}
	line := e.Line
	if e.At != nil {
		line = s.Cyan(line)
	}
	w.WriteString(line)
	w.WriteByte('\n')
}

// sampleRecord is an event of a sample module as a record.
func sampleRecord(m module.Event) run.Record {
	e := run.Record{Event: m.Name, Detail: m.Line}
	if p := m.Probe; p != nil {
		e.Kind, e.Probe = p.Kind, p.Symbol
		if p.Addr != 0 {
			e.Addr = p.Addr.String()
		}
	}
	if at := m.At; at != nil {
		e = e.At(run.Where{CPU: at.CPU, Task: at.Task, Now: at.Now})
		e.Comm = at.Comm
	}
	switch m.Name {
	case "pre", "post":
		e = e.Registers(m.Regs)
	case "return":
		e.Value = run.HexWord(m.Value)
		if m.Duration != 0 { // else the module took no time
			e.Duration = &m.Duration
		}
	case "refused":
		e = e.Refused(m.Err)
	case "counters":
		e.Hits, e.Nmissed = &m.Probe.Hits, &m.Probe.Missed
	}
	return e
}
