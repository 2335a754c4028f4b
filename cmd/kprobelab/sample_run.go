package main

import (
	"bufio"
	"errors"

	"kprobelab"
	"kprobelab/errno"
	"kprobelab/internal/sample/module"
	"kprobelab/internal/session"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
)

var samples = map[string]module.Sample{
	"kprobe": module.Kprobe, "kretprobe": module.Kretprobe, "jprobe": module.Jprobe,
	"article kprobe": module.ArticleKprobe, "article jprobe": module.ArticleJprobe,
	"article kretprobe": module.ArticleKretprobe,
}

// sampleBudget is in instructions: all of the most tasks' most calls fit.
const sampleBudget = 1_000_000_000

func (r *sampleRun) execute(t *term, img *kimage.Image) error {
	l, err := kprobelab.New(img, &kprobelab.Options{CPUs: r.cpus, Seed: r.seed, Budget: sampleBudget})
	if err != nil {
		return machineError(img, err)
	}
	defer l.Close()
	w := bufio.NewWriter(t.out)
	say := func(e module.Event) { sayLine(w, t.outStyle, e) }
	if r.json {
		o := newJSON(w)
		say = o.sample
	}
	err = samples[r.name](l, &module.Options{
		Symbol: r.symbol, MaxActive: r.maxActive, Tasks: r.tasks, Calls: r.calls, Seed: r.seed,
	}, say)
	if err != nil {
		err = &failure{exitRefused, oneLine(err)}
	}
	return errors.Join(err, w.Flush())
}

// sayLine writes an event as the kernel's log has it.
func sayLine(w *bufio.Writer, s style, e module.Event) {
	if e.Line == "" {
		return
	}
	line := e.Line
	if e.At != nil {
		line = s.cyan(line)
	}
	w.WriteString(line)
	w.WriteByte('\n')
}

// sample writes an event of a sample module.
func (o *jsonOutput) sample(m module.Event) {
	e := event{Event: m.Name, Detail: m.Line}
	if p := m.Probe; p != nil {
		e.Kind, e.Probe = p.Kind, p.Symbol
		if p.Addr != 0 {
			e.Addr = p.Addr.String()
		}
	}
	if at := m.At; at != nil {
		e = e.at(session.Where{CPU: at.CPU, Task: at.Task, Now: at.Now})
		e.Comm = at.Comm
	}
	switch m.Name {
	case "pre", "post":
		e = e.registers(m.Regs)
	case "return":
		e.Value = hexWord(m.Value)
		if m.Duration != 0 { // else the module took no time
			e.Duration = &m.Duration
		}
	case "refused":
		e.Errno, e.Error = -int(errno.Of(m.Err)), m.Err.Error()
		var r *probepoint.Refusal
		if errors.As(m.Err, &r) {
			e.Rule = r.Rule.String()
		}
	case "counters":
		e.Hits, e.Nmissed = &m.Probe.Hits, &m.Probe.Missed
	}
	o.write(e)
}
