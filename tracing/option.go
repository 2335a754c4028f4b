package tracing

import (
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/word"
)

// options are the trace options that mean something here (trace_options, the
// folder options); each trace array has its own.
type options struct {
	noParent   bool
	symOffset  bool
	symAddr    bool
	noAnnotate bool
	noContext  bool
	noMarkers  bool
	noIRQInfo  bool
	// pauseOnTrace stops the trace while trace is open for reading.
	pauseOnTrace bool
	// stacktrace records a stack after every record of an event.
	stacktrace bool
}

// option is one option: how it is read and set.
type option struct {
	name string
	get  func() bool
	set  func(on bool)
}

// optionList is in the kernel's order (enum trace_iterator_bits).
func (a *traceArray) optionList() []option {
	flag := func(name string, p *bool, inverted bool) option {
		return option{name, func() bool { return *p != inverted }, func(on bool) { *p = on != inverted }}
	}
	o := &a.options
	return []option{
		flag("print-parent", &o.noParent, true),
		flag("sym-offset", &o.symOffset, false),
		flag("sym-addr", &o.symAddr, false),
		flag("annotate", &o.noAnnotate, true),
		flag("context-info", &o.noContext, true),
		{"overwrite", a.ring.Overwrite, a.ring.SetOverwrite},
		flag("irq-info", &o.noIRQInfo, true),
		flag("markers", &o.noMarkers, true),
		flag("pause-on-trace", &o.pauseOnTrace, false),
		flag("stacktrace", &o.stacktrace, false),
	}
}

// optionNodes are the files in options.
func (a *traceArray) optionNodes() []*node {
	var list []*node
	for _, o := range a.optionList() {
		list = append(list, setting(o.name, func() string { return zeroOne(o.get()) + "\n" }, func(s string) error {
			v, err := decimal(s)
			if err != nil {
				return err
			}
			if v > 1 {
				return errno.EINVAL
			}
			o.set(v == 1)
			return nil
		}))
	}
	return list
}

// optionText returns the content of trace_options: the names, with "no" before options that are
// off.
func (a *traceArray) optionText() string {
	var b strings.Builder
	for _, o := range a.optionList() {
		if !o.get() {
			b.WriteString("no")
		}
		b.WriteString(o.name + "\n")
	}
	return b.String()
}

// writeOption sets the option that is named, or with "no" before it turns it
// off.
func (a *traceArray) writeOption(s string) error {
	s = word.Trim(s)
	for _, o := range a.optionList() {
		if s == o.name || s == "no"+o.name {
			o.set(s == o.name)
			return nil
		}
	}
	return errno.EINVAL
}
