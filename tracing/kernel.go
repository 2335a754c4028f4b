package tracing

import (
	"slices"
	"strings"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/probepoint"
	"kprobelab/tracing/definition"
	"kprobelab/x86"
)

// kernel answers what definitions ask.
type kernel struct{ *Tracing }

var _ definition.Kernel = kernel{}

// Entry is kprobe_on_func_entry.
func (k kernel) Entry(symbol string, offset int64) error {
	pt, err := probepoint.Resolve(k.k.View(), probepoint.Request{Symbol: symbol, Offset: uint32(offset)}, k.p)
	known := err == nil && pt.Symbol.Name != ""
	switch {
	case known && pt.Entry:
		return nil
	case !k.p.Kret.EntryErrno && offset == 0:
		return errno.ENOENT // before 5.10.y an entry by its name alone was not tested
	case known || !k.p.Kret.EntryErrno:
		return errno.EINVAL
	case err != nil:
		return errno.Of(err)
	}
	return errno.ENOENT
}

// Count is number_of_same_symbols.
func (k kernel) Count(symbol string) (int, bool) {
	if module, _, in := strings.Cut(symbol, ":"); in && !k.moduleLoaded(module) {
		return 0, false
	}
	return len(k.k.View().Lookup(symbol)), true
}

// Proto is the prototype that BTF has.
func (k kernel) Proto(symbol string) (definition.Proto, bool) {
	if k.o.Source == nil {
		return definition.Proto{}, false
	}
	if _, name, in := strings.Cut(symbol, ":"); in {
		symbol = name
	}
	p, ok := k.o.Source.Proto(symbol)
	types, ret, known := k.o.Source.ProtoTypes(symbol)
	if !ok || !known {
		return definition.Proto{}, false
	}
	var out definition.Proto
	if p.Ret.Size > 0 {
		out.Ret = ctype{ret}
	}
	for i, a := range p.Params {
		out.Params = append(out.Params, definition.Param{Name: a.Name, Type: ctype{types[i]}})
	}
	return out, true
}

// Struct is a structure that BTF has.
func (k kernel) Struct(name string) (definition.CType, bool) {
	if k.o.Source == nil {
		return nil, false
	}
	t, ok := k.o.Source.Struct(name)
	return ctype{t}, ok
}

// ctype is an image's type as definitions want it.
type ctype struct{ kimage.Type }

func (c ctype) Target() (definition.CType, bool) {
	t, ok := c.Type.Target()
	return ctype{t}, ok
}

func (c ctype) Elem() (definition.CType, bool) {
	t, ok := c.Type.Elem()
	return ctype{t}, ok
}

func (c ctype) Member(name string) (definition.Member, bool) {
	m, ok := c.Type.Member(name)
	return definition.Member{Type: ctype{m.Type}, Offset: m.Offset, Bits: m.Bits}, ok
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
	if !t.notrace || !t.withoutSite(at) {
		return false
	}
	s, _ := t.k.View().SymbolAt(at)
	base, _, suffixed := strings.Cut(s.Name, ".")
	if !suffixed {
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
