package tracing

import (
	"fmt"
	"strings"

	"kprobelab/errno"
	"kprobelab/tracing/ring"
)

// root are the files of the tracing folder.
func (t *Tracing) root() []*node {
	list := append(t.top.nodes(),
		text("README", t.readme),
		text("available_tracers", t.availableTracers),
		t.commands("kprobe_events", false),
		text("kprobe_profile", t.profile),
		folder("kprobes", t.kprobesFiles),
		folder("debug", t.sysctlFiles),
		folder("instances", t.instanceNodes),
	)
	list = append(list, t.stackNodes()...)
	if t.notrace {
		list = append(list, text("available_filter_functions", func() string { return functionNames(t.traceables(), nil) }))
	}
	if t.c.DynamicEvents {
		list = append(list, t.commands("dynamic_events", true))
	}
	return list
}

// commands is kprobe_events or dynamic_events. Truncation deletes all.
func (t *Tracing) commands(name string, dynamic bool) *node {
	return &node{
		name: name, mode: modeWrite,
		read: func() string {
			var b strings.Builder
			for _, tp := range t.probes {
				b.WriteString(tp.line() + "\n")
			}
			return b.String()
		},
		write: func(b []byte) (int, error) {
			return t.runCommands(b, func(line string) error { return t.command(line, dynamic) })
		},
		trunc: t.deleteAll,
	}
}

// profile is kprobe_profile (spec 9.12).
func (t *Tracing) profile() string {
	var b strings.Builder
	for _, tp := range t.probes {
		fmt.Fprintf(&b, "  %-44s %15d %15d\n", tp.def.Event, tp.hits, tp.missed())
	}
	return b.String()
}

// kprobesFiles are debugfs' files of kprobes (spec 8).
func (t *Tracing) kprobesFiles() []*node {
	return []*node{
		{name: "list", mode: 0o400, read: t.k.List},
		{name: "blacklist", mode: 0o400, read: t.k.Blacklist},
		{name: "enabled", mode: 0o600, read: t.k.ReadEnabled, write: func(b []byte) (int, error) {
			if err := t.k.WriteEnabled(string(b)); err != nil {
				return 0, err
			}
			return len(b), nil
		}},
	}
}

// sysctlFiles is the folder debug of /proc/sys (spec 8.4).
func (t *Tracing) sysctlFiles() []*node {
	if !t.p.Optimize.Exists {
		return nil
	}
	n := setting("kprobes-optimization", t.k.ReadOptimization, t.k.WriteOptimization)
	n.mode = 0o644
	return []*node{n}
}

// nodes are the files of a trace array: of the top one, and of an instance.
func (a *traceArray) nodes() []*node {
	list := []*node{
		{name: "trace", mode: modeWrite, read: func() string { return a.traceText(ring.AllCPUs) }, write: discard, trunc: a.clear},
		{name: "trace_pipe", mode: modeRead, open: func(int) Handle { return newPipe(a, ring.AllCPUs) }},
		{name: "trace_marker", mode: modeOnly, write: a.mark},
		setting("tracing_on", func() string { return zeroOne(a.on) + "\n" }, a.writeOn),
		setting("current_tracer", func() string { return a.tracer + "\n" }, a.writeTracer),
		setting("buffer_size_kb", a.sizeText, func(s string) error { return a.writeSize(ring.AllCPUs, s) }),
		text("buffer_total_size_kb", func() string { return itoa(a.ring.TotalSize()>>10) + "\n" }),
		setting("trace_clock", a.clockText, a.writeClock),
		setting("trace_options", a.optionText, a.writeOption),
		folder("options", a.optionNodes),
		folder("per_cpu", a.perCPU),
		folder("events", a.eventNodes),
		text("available_events", func() string { return a.eventNames(func(*eventFile) bool { return true }) }),
		{
			name: "set_event", mode: modeWrite, write: a.writeSetEvent, trunc: func() error { return a.setAll(false) },
			read: func() string { return a.eventNames((*eventFile).on) },
		},
	}
	list = append(list, a.functionNodes()...)
	if a.t.c.ErrorLog {
		list = append(list, &node{
			name: "error_log", mode: modeWrite, read: a.errors.String, write: discard,
			trunc: func() error { a.errors.clear(); return nil },
		})
	}
	return list
}

// discard is a write that changes nothing: only truncation does.
func discard(b []byte) (int, error) { return len(b), nil }

func zeroOne(on bool) string {
	if on {
		return "1"
	}
	return "0"
}

func (a *traceArray) clear() error {
	a.ring.Reset()
	return nil
}

func (a *traceArray) writeOn(s string) error {
	v, err := decimal(s)
	if err == nil {
		a.setOn(v != 0)
	}
	return err
}

// decimal reads what a simple file takes: a number, and one newline behind it.
func decimal(s string) (uint64, error) {
	s = strings.TrimPrefix(strings.TrimSuffix(s, "\n"), "+")
	var v uint64
	for i := range len(s) {
		d := uint64(s[i] - '0')
		if d > 9 || v > (1<<63)/10 {
			return 0, errno.EINVAL
		}
		v = 10*v + d
	}
	if s == "" {
		return 0, errno.EINVAL
	}
	return v, nil
}

func (a *traceArray) sizeText() string {
	if size, same := a.ring.SameSize(); same {
		return itoa(size>>10) + "\n"
	}
	return "X\n"
}

// instanceNodes are the folders in instances.
func (t *Tracing) instanceNodes() []*node {
	var list []*node
	for _, a := range t.instances {
		list = append(list, folder(a.name, a.nodes))
	}
	return list
}
