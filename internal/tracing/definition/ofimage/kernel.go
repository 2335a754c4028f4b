// Package ofimage answers what definitions of kprobe_events ask of a kernel, by an image's symbols and BTF.
//
// It must not know what a definition says.
package ofimage

import (
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/definition"
	"kprobelab/kimage"
	"kprobelab/kimage/btf"
	"kprobelab/kprobes/probepoint"
	"kprobelab/profile"
)

// Kernel is an image as definitions see it: its symbols and types.
type Kernel struct {
	View    probepoint.Names
	Profile *profile.Config
	// Types gives what BTF tells, when it is asked for; nil where there is none.
	Types func() *btf.Types
	// Loaded reports whether a module is there, as find_module does.
	Loaded func(module string) bool
}

var _ definition.Kernel = (*Kernel)(nil)

// Entry is kprobe_on_func_entry.
func (k *Kernel) Entry(symbol string, offset int64) error {
	pt, err := probepoint.Resolve(k.View, probepoint.Request{Symbol: symbol, Offset: uint32(offset)}, k.Profile)
	known := err == nil && pt.Symbol.Name != ""
	switch {
	case known && pt.Entry:
		return nil
	case !k.Profile.Kret.EntryErrno && offset == 0:
		return errno.ENOENT // before 5.10.y an entry by its name alone was not tested
	case known || !k.Profile.Kret.EntryErrno:
		return errno.EINVAL
	case err != nil:
		return errno.Of(err)
	}
	return errno.ENOENT
}

// Count is number_of_same_symbols.
func (k *Kernel) Count(symbol string) (int, bool) {
	if module, _, in := strings.Cut(symbol, ":"); in && !k.Loaded(module) {
		return 0, false
	}
	return kimage.SameName(k.View.Lookup(symbol), k.Profile.Tracing.VmlinuxHidesModules), true
}

// Proto returns the prototype of BTF. It is looked for by the whole name, so the prototype of "module:name" is
// never found.
func (k *Kernel) Proto(symbol string) (definition.Proto, bool) {
	if k.Types == nil {
		return definition.Proto{}, false
	}
	btf := k.Types()
	p, ok := btf.Proto(symbol)
	types, ret, known := btf.ProtoTypes(symbol)
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
func (k *Kernel) Struct(name string) (definition.CType, bool) {
	if k.Types == nil {
		return nil, false
	}
	t, ok := k.Types().Struct(name)
	return ctype{t}, ok
}

// TypeByID is a type by its number in BTF.
func (k *Kernel) TypeByID(id int) (definition.CType, bool) {
	if k.Types == nil {
		return nil, false
	}
	t, ok := k.Types().TypeByID(id)
	return ctype{t}, ok
}

// ctype is an image's type as definitions want it.
type ctype struct{ btf.Type }

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
