package report

import (
	"errors"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/definition"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

// events returns the answer of kprobe_events, or of perf's kprobe unit, to the probe (docs/spec
// 9.2, place; 9.5, registration). direct is the answer of register_kprobe or register_kretprobe.
func (k *checker) events(p *Probe, r probepoint.Request, direct error, via Via) error {
	c := &k.Profile().Tracing
	if !c.Exists {
		return k.noEvents(via)
	}
	uniqueFirst := via == ViaPerf || c.UniqueFirst
	unique := func() error {
		if r.Symbol == "" || !c.UniqueSymbols {
			return nil
		}
		return k.unique(p, r, via)
	}
	if uniqueFirst {
		if err := unique(); err != nil {
			return err
		}
	}
	// A return probe by symbol has to be at an entry before anything else.
	if p.Return && r.Symbol != "" && errors.Is(direct, errno.EINVAL) && ruleOf(direct) == rule.NotEntry {
		return direct
	}
	if !uniqueFirst {
		if err := unique(); err != nil {
			return err
		}
	}
	if via == ViaPerf && c.PerfGoodNames && r.Symbol != "" && !definition.IsName(r.Symbol) {
		return &probepoint.Refusal{Errno: errno.EINVAL, Rule: rule.Definition, Why: r.Symbol + " is no name of an event, which perf makes of a symbol"}
	}
	if k.notrace(k.asked(r)) {
		return refusal(errno.EINVAL, rule.Notrace)
	}
	return k.boundary(direct)
}

// noEvents refuses on a kernel without kprobe events: perf's are made by the same code.
func (k *checker) noEvents(via Via) error {
	why := rule.NoEvents.Why()
	switch {
	case !k.Profile().Built.Kprobes:
		why += ", for it is built without kprobes (no CONFIG_KPROBES)"
	case via == ViaPerf:
		why += ", by which perf events at kprobes are made (no CONFIG_KPROBE_EVENTS)"
	default:
		why += " (no CONFIG_KPROBE_EVENTS)"
	}
	return &probepoint.Refusal{Errno: errno.ENOENT, Rule: rule.NoEvents, Why: why}
}

// boundary turns an answer of register_kprobe into the one that the tracing files give.
func (k *checker) boundary(err error) error {
	var r *probepoint.Refusal
	if !k.Profile().Tracing.BoundaryEINVAL || !errors.As(err, &r) || r.Errno != errno.EILSEQ {
		return err
	}
	told := *r
	told.Errno = errno.EINVAL
	return &told
}

func ruleOf(err error) rule.ID {
	var r *probepoint.Refusal
	if errors.As(err, &r) {
		return r.Rule
	}
	return rule.None
}

// unique refuses a name that no symbol or several have.
func (k *checker) unique(p *Probe, r probepoint.Request, via Via) error {
	c := &k.Profile().Tracing
	if module, _, _ := p.symbol(); module != "" && !c.UniqueFirst {
		return nil
	}
	plain := via == ViaEvents && c.UniqueFirst // 6.12's parser says EINVAL to both
	switch n := kimage.SameName(k.Lookup(r.Symbol), c.VmlinuxHidesModules); {
	case n == 1:
		return nil
	case n > 1 && plain:
		return refusal(errno.EINVAL, rule.NotUnique)
	case n > 1:
		return refusal(errno.EADDRNOTAVAIL, rule.NotUnique)
	case plain:
		return refusal(errno.EINVAL, rule.UnknownSymbol)
	}
	return refusal(errno.ENOENT, rule.UnknownSymbol)
}

func (k *checker) asked(r probepoint.Request) x86.Addr {
	_, at := askedFor(k, r)
	return at
}

// notrace reports whether kprobe_events refuses the address because its function has no
// ftrace site; for a clone with a suffix, the original function's site counts. In
// kernels without ftrace sites the test does not exist.
func (k *checker) notrace(at x86.Addr) bool {
	if at == 0 || !k.Traces() || !k.Profile().Tracing.RefusesNotrace {
		return false
	}
	s, ok := k.SymbolAt(at)
	if !ok || k.Traceable(at) {
		return false
	}
	base, _, clone := strings.Cut(s.Name, ".")
	if !clone || k.Profile().Tracing.RefusesParts {
		return true
	}
	if original, ok := k.first(base); ok {
		return !k.Traceable(original.Addr)
	}
	return true
}

// kretprobe returns register_kretprobe's answer (docs/spec 5.2).
func (k *checker) kretprobe(r probepoint.Request) error {
	pt, err := probepoint.ResolveReturn(k, r, k.Profile())
	if err != nil {
		return err
	}
	_, err = k.Verdict(&pt)
	return err
}
