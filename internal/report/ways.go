package report

import (
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/definition"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
)

// Ways answers for one kernel whether it accepts the probes that tools ask for, each by
// the way that the tool takes. Its answers are nil, or a *probepoint.Refusal. It is for
// one goroutine.
type Ways struct{ k *checker }

// NewWays makes the Ways of a kernel.
func NewWays(kernel Kernel) *Ways { return &Ways{newChecker(kernel)} }

// Traced calls yield with the functions of available_filter_functions, in its order. A
// kernel without ftrace sites has no such file; all its functions come in its place.
func (w *Ways) Traced(yield func(*kimage.Symbol) bool) { w.k.traced()(yield) }

// Traces reports whether the kernel has a function tracer, and so that file.
func (w *Ways) Traces() bool { return w.k.Traces() }

// Perf returns the answer to an event of perf's kprobe unit at a place, SYMBOL or
// MODULE:SYMBOL with an offset; ret asks for a return probe.
func (w *Ways) Perf(place string, ret bool) error { return w.k.by(place, ret, ViaPerf) }

// Events is the answer of kprobe_events to a definition of the same. A probe in a module
// that is not loaded is accepted, and waits for it.
func (w *Ways) Events(place string, ret bool) error {
	err := w.k.by(place, ret, ViaEvents)
	if module, _, in := strings.Cut(place, ":"); err == nil || !in || w.k.loaded(module) {
		return err
	}
	if _, waits := w.k.defined(&Probe{place: place, Return: ret, line: definition.LineOf("p:kprobes/probe", place), defines: true}, refusal(errno.ENOENT, rule.UnknownSymbol)); waits {
		return nil
	}
	return err
}

// by is the answer of one of the two ways.
func (k *checker) by(place string, ret bool, via Via) error {
	p := Probe{place: place, Return: ret, Via: via}
	r, err := requestOf(place)
	if err != nil {
		return &probepoint.Refusal{Errno: errno.EINVAL, Rule: rule.Line, Why: err.Error()}
	}
	_, direct := k.register(r)
	if ret {
		direct = k.kretprobe(r)
	}
	return k.events(&p, r, direct, via)
}

// Multi returns the answer to a link of a BPF program to traced functions, for one of
// the functions.
func (w *Ways) Multi(function string) error {
	if c := w.k.multi(&Probe{place: function, Via: ViaMulti, kind: "kprobe.multi"}); !c.accepted() {
		return c.refusal()
	}
	return nil
}

// Trampoline is the answer to a BPF program at the entry of a function, or at its
// return.
func (w *Ways) Trampoline(function string, ret bool) error {
	p := Probe{place: function, Return: ret, Via: ViaTrampoline, kind: "fentry"}
	if ret {
		p.kind = "fexit"
	}
	if c := w.k.trampoline(&p); !c.accepted() {
		return c.refusal()
	}
	return nil
}

// refusal is the cell's refusal as an error.
func (c *CheckCell) refusal() error {
	return &probepoint.Refusal{Errno: errno.Errno(-c.Errno), Rule: c.Reason, Why: c.Detail}
}
