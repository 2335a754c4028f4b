package tracing

import (
	"fmt"
	"strconv"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/ring"
	"kprobelab/internal/tracing/word"
)

// root are the files of the tracing folder.
func (t *Tracing) root() []*node {
	list := append(t.top.nodes(),
		text("README", t.readme),
		text("available_tracers", t.availableTracers),
		text("saved_cmdlines", t.comms.text),
		t.commands("kprobe_events", kernelProbes),
		text("kprobe_profile", t.profile),
		folder("kprobes", t.kprobesFiles),
		folder("debug", t.sysctlFiles),
		folder("instances", t.instanceNodes),
	)
	list = append(list, t.stackNodes()...)
	list = append(list, t.uprobeNodes()...)
	if t.notrace {
		list = append(list, text("available_filter_functions", func() string { return functionNames(t.traceables(), nil) }))
	}
	if t.c.DynamicEvents {
		list = append(list, t.commands("dynamic_events", allProbes))
	}
	return list
}

// commands is kprobe_events, uprobe_events or dynamic_events. Truncation deletes all.
func (t *Tracing) commands(name string, of family) *node {
	return &node{
		name: name, mode: modeWrite,
		read: func() string {
			var b strings.Builder
			for _, tp := range t.probes {
				if of.has(tp) {
					b.WriteString(tp.line() + "\n")
				}
			}
			return b.String()
		},
		write: func(b []byte) (int, error) {
			return t.runCommands(b, func(line string) error { return t.command(line, of) })
		},
		trunc: func() error { return t.deleteAll(of) },
	}
}

// profile is kprobe_profile (docs/spec 9.12).
func (t *Tracing) profile() string {
	var b strings.Builder
	for _, tp := range t.probes {
		if !tp.user() {
			fmt.Fprintf(&b, "  %-44s %15d %15d\n", tp.def.Event, tp.hits, tp.missed())
		}
	}
	return b.String()
}

// kprobesFiles are debugfs' files of kprobes (docs/spec 8).
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

// sysctlFiles is the folder debug of /proc/sys (docs/spec 8.4).
func (t *Tracing) sysctlFiles() []*node {
	if !t.p.Optprobes() {
		return nil
	}
	n := setting("kprobes-optimization", t.k.ReadOptimization, t.k.WriteOptimization)
	n.mode = 0o644
	return []*node{n}
}

// nodes are the files of a trace array: of the top one, and of an instance.
func (a *traceArray) nodes() []*node {
	list := []*node{
		a.traceNode(ring.AllCPUs, a.clear),
		a.snapshotNode(ring.AllCPUs),
		{name: "trace_pipe", mode: modeRead, open: func(int) Handle { return newPipe(a, ring.AllCPUs) }},
		{name: "trace_marker", mode: modeOnly, write: a.mark},
		setting("tracing_on", func() string { return zeroOne(a.onText()) + "\n" }, a.writeOn),
		setting("current_tracer", func() string { return a.tracer + "\n" }, a.writeTracer),
		setting("buffer_size_kb", a.sizeText, func(s string) error { return a.writeSize(ring.AllCPUs, s) }),
		text("buffer_total_size_kb", func() string { return itoa(a.ring.TotalKB()) + "\n" }),
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

// onText returns the content of tracing_on. Up to 6.1 it is also off while a reader stops the
// trace.
func (a *traceArray) onText() bool {
	if a.t.c.BTFArgs {
		return a.on
	}
	return a.recording()
}

func (a *traceArray) writeOn(s string) error {
	v, err := decimal(s)
	if err == nil {
		a.setOn(v != 0)
	}
	return err
}

// decimal reads the text of a simple file: a number and one newline, up to a NUL (kstrtoul). ERANGE
// if the number does not fit.
func decimal(s string) (uint64, error) {
	s, _, _ = strings.Cut(s, "\x00")
	s = strings.TrimPrefix(strings.TrimSuffix(s, "\n"), "+")
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, errno.EINVAL
	}
	v, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, errno.ERANGE
	}
	return v, nil
}

// firstWord returns the first word of a write, which is all that a kernel reads of it
// (trace_get_user). n counts the bytes used: the blanks before the word, the word, and the blank
// after it.
func firstWord(b []byte) (w string, n int) {
	start := 0
	for start < len(b) && blank(b[start]) {
		start++
	}
	n = start
	for n < len(b) && !blank(b[n]) {
		n++
	}
	w = string(b[start:n])
	return w, min(n+1, len(b))
}

// blank reports whether a byte separates words: white space or NUL.
func blank(c byte) bool { return word.IsSpace(c) || c == 0 }

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
