package tracing

import (
	"slices"
	"strings"

	"kprobelab/internal/tracing/definition"
	"kprobelab/internal/tracing/definition/ofimage"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/x86"
)

// kernel returns the facts about the kernel that definitions need.
func (t *Tracing) kernel() definition.Kernel {
	k := &ofimage.Kernel{View: t.k.View(), Profile: t.p, Loaded: t.moduleLoaded}
	if t.o.Source != nil {
		k.Types = t.o.Source.Types
	}
	return k
}

// moduleLoaded is find_module.
func (t *Tracing) moduleLoaded(name string) bool {
	if t.o.Source == nil || !slices.Contains(t.o.Source.Modules(), name) {
		return false
	}
	m, ok := t.k.View().(probepoint.Modules)
	return !ok || m.ModuleState(name) != probepoint.ModuleGoing
}

// mayComeWithModule reports that the place names a module that is not there
// (or an address), so that a probe which found nothing is kept for later.
func (t *Tracing) mayComeWithModule(d *definition.Definition) bool {
	module, _, in := strings.Cut(d.Symbol, ":")
	return d.Symbol == "" || in && !t.moduleLoaded(module)
}

// unprobed is within_notrace_func: the function at the place has no ftrace site.
func (t *Tracing) unprobed(d *definition.Definition) bool {
	at := d.Addr
	if d.Symbol != "" {
		found := t.k.View().Lookup(d.Symbol)
		if len(found) == 0 {
			return false
		}
		at = found[0].Addr.Add(int64(d.Offset))
	}
	if !t.notrace || !t.c.RefusesNotrace || !t.withoutSite(at) {
		return false
	}
	s, _ := t.k.View().SymbolAt(at)
	base, _, suffixed := strings.Cut(s.Name, ".")
	if !suffixed || t.c.RefusesParts {
		return true
	}
	if found := t.k.View().Lookup(base); len(found) > 0 {
		return t.withoutSite(found[0].Addr)
	}
	return true
}

func (t *Tracing) withoutSite(at x86.Addr) bool {
	s, ok := t.k.View().SymbolAt(at)
	if at == 0 || !ok {
		return false
	}
	_, has := t.k.View().SiteIn(kimage.SiteFtrace, x86.Range{Start: s.Addr, End: s.Addr.Add(int64(s.Size))})
	return !has
}
