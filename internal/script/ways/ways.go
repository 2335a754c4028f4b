// Package ways says of an image which probes of a script its kernel accepts: each is
// asked for in the way that the language's tool takes.
//
// It must not know a language's syntax, how a probe is planted, or an engine.
package ways

import (
	"errors"
	"slices"

	"kprobelab/internal/report"
	"kprobelab/internal/script/bpftrace"
	"kprobelab/internal/script/host"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
)

// Bpftrace answers bpftrace's questions about an image (bpftrace.Ways). One goroutine may use it.
type Bpftrace struct {
	img  *kimage.Image
	ways *report.Ways
}

var _ bpftrace.Ways = (*Bpftrace)(nil)

// ForBpftrace makes the answers of an image.
func ForBpftrace(img *kimage.Image) *Bpftrace {
	return &Bpftrace{img, report.NewWays(report.OfImage(img))}
}

// Traces implements bpftrace.Ways.
func (b *Bpftrace) Traces() bool { return b.ways.Traces() }

// Traced implements bpftrace.Ways.
func (b *Bpftrace) Traced() (list []host.Function) {
	for s := range b.ways.Traced {
		list = append(list, host.Function{Name: s.Name, Module: s.Module, Addr: uint64(s.Addr)})
	}
	return list
}

// Blacklist implements bpftrace.Ways.
func (b *Bpftrace) Blacklist() (names []string) {
	for _, e := range b.img.Blacklist() {
		if s, ok := b.img.SymbolAt(e.Start); ok {
			names = append(names, s.Name)
		}
	}
	return names
}

// Loaded implements bpftrace.Ways.
func (b *Bpftrace) Loaded(module string) bool { return slices.Contains(b.img.Modules(), module) }

// kernel is the module of the kernel's own functions.
const kernel = "vmlinux"

// Typed implements bpftrace.Ways.
func (b *Bpftrace) Typed(function, module string) (parameters int, ok bool) {
	p, ok := b.img.Types().Proto(function)
	if !ok || module != "" && !b.hasIn(function, module) {
		return 0, false
	}
	if parameters = len(p.Params); p.Variadic {
		parameters++ // BTF has one more for them
	}
	return parameters, true
}

// hasIn reports whether the BTF of a function that some module has is that module's.
func (b *Bpftrace) hasIn(function, module string) bool {
	found := b.img.Lookup(function)
	if module == kernel {
		return len(found) == 0 || slices.ContainsFunc(found, func(s kimage.Symbol) bool { return s.Module == "" })
	}
	return slices.ContainsFunc(found, func(s kimage.Symbol) bool { return s.Module == module })
}

// Kprobe implements bpftrace.Ways: where perf refuses the probe, the tool defines an
// event in kprobe_events, with a name of its own.
func (b *Bpftrace) Kprobe(place string, ret bool) error {
	if b.ways.Perf(place, ret) == nil {
		return nil
	}
	return b.ways.Events(place, ret)
}

// probed is the function to which bpftrace links a program to find out whether links work.
const probed = "ksys_read"

// Links implements bpftrace.Ways.
func (b *Bpftrace) Links() bool { return b.ways.Multi(probed) == nil }

// ProgramLinks implements bpftrace.Ways.
func (b *Bpftrace) ProgramLinks() bool { return len(b.img.Lookup("bpf_uprobe_multi_link_attach")) > 0 }

// Link implements bpftrace.Ways. The functions are traced.
func (b *Bpftrace) Link(functions []string) error { return b.ways.Multi(functions[0]) }

// Trampoline implements bpftrace.Ways.
func (b *Bpftrace) Trampoline(function string, ret bool) (verified bool, err error) {
	err = b.ways.Trampoline(function, ret)
	var r *probepoint.Refusal
	return errors.As(err, &r) && !slices.Contains(atAttach, r.Rule), err
}

// atAttach are the refusals of a trampoline that come when the program is attached. The verifier
// does not check whether the site can call, or how many words the trampoline passes on.
var atAttach = []rule.ID{rule.NoSite, rule.ManyWords, rule.NoPrograms}
