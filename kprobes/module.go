package kprobes

import (
	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
	"kprobelab/x86"
)

// moduleSource is an optional interface of a View, such as an image, that has modules. It returns
// their names and the ranges of their text.
type moduleSource interface {
	Modules() []string
	ModuleText(name string) (kimage.ModuleText, bool)
}

// module is a module of the image and its state.
type module struct {
	name  string
	text  kimage.ModuleText
	state probepoint.ModuleState
}

// modules are in the order in which they were loaded. An image's modules are
// live when the subsystem starts.
type modules []*module

func modulesOf(v kimage.View) (list modules) {
	src, ok := v.(moduleSource)
	if !ok {
		return nil
	}
	for _, name := range src.Modules() {
		text, _ := src.ModuleText(name)
		list = append(list, &module{name: name, text: text})
	}
	return list
}

func (l modules) named(name string) *module {
	for _, m := range l {
		if m.name == name {
			return m
		}
	}
	return nil
}

// find is a module by its name, or a refusal with ENOENT.
func (k *Kprobes) findModule(name string) (*module, error) {
	m := k.mods.named(name)
	if m == nil {
		return nil, probepoint.Refuse(rule.NoModule, 0, name)
	}
	return m, nil
}

// ModuleComing is the notifier's COMING (docs/spec 1.10): a module that has gone is loaded again,
// at the same address, with fresh text. Its part of the blacklist is added, and its init text can
// be probed. It fails with ENOENT if the image has no such module, with EEXIST if it is loaded.
func (k *Kprobes) ModuleComing(name string) error {
	m, err := k.findModule(name)
	if err != nil {
		return err
	}
	if m.state != probepoint.ModuleGoing && m.state != probepoint.ModuleUnformed {
		return probepoint.Refuse(rule.ModuleLoaded, m.text.Text.Start, name)
	}
	for _, r := range []x86.Range{m.text.Text, m.text.Init} {
		if err := k.loadText(r); err != nil {
			return err
		}
	}
	m.state = probepoint.ModuleComing
	kept := modules{}
	for _, o := range k.mods {
		if o != m {
			kept = append(kept, o)
		}
	}
	k.mods = append(kept, m) // the blacklist grows at its end
	return nil
}

// loadText writes the image's own bytes.
func (k *Kprobes) loadText(r x86.Range) error {
	b := make([]byte, r.Len())
	n := k.view.View.CodeAt(r.Start, b)
	if n == 0 {
		return nil
	}
	return k.m.PokeText(r.Start, b[:n])
}

// ModuleLive is the notifier's LIVE: the module has run its init function, and
// probes in its init text are gone. Errors as in ModuleComing; EINVAL where
// the module is not coming.
func (k *Kprobes) ModuleLive(name string) error {
	m, err := k.findModule(name)
	if err != nil {
		return err
	}
	if m.state != probepoint.ModuleComing {
		return probepoint.RefuseAs(errno.EINVAL, rule.ModuleLoaded, m.text.Text.Start, name)
	}
	m.state = probepoint.ModuleLive
	k.KillKprobes(m.text.Init)
	return nil
}

// ModuleStops is the beginning of an unload: no reference can be taken any more (try_stop_module). Errors
// as in ModuleComing.
func (k *Kprobes) ModuleStops(name string) error {
	m, err := k.findModule(name)
	if err == nil {
		m.state = probepoint.ModuleGoing
	}
	return err
}

// ModuleUnformed follows ModuleGoing: the text is taken out of the kernel's tables and is about to be
// freed. Errors as in ModuleComing.
func (k *Kprobes) ModuleUnformed(name string) error {
	m, err := k.findModule(name)
	if err == nil {
		m.state = probepoint.ModuleUnformed
	}
	return err
}

// ModuleGoing is the notifier's GOING: the module is unloaded. Its probes are
// gone, and so is its part of the blacklist; nothing in it can be probed until
// it comes again. A module that has gone stays so. The errors are ENOENT where
// there is none of that name and, in 2.6.18, whose probes pin a module, EAGAIN
// while it has any.
func (k *Kprobes) ModuleGoing(name string) error {
	m, err := k.findModule(name)
	if err != nil {
		return err
	}
	if k.c.Check.ModulePinned && k.probedIn(m) {
		return probepoint.Refuse(rule.ModulePinned, m.text.Text.Start, name)
	}
	k.KillKprobes(m.text.Text)
	k.KillKprobes(m.text.Init)
	m.state = probepoint.ModuleGoing
	return nil
}

func (k *Kprobes) probedIn(m *module) (any bool) {
	k.table.each(func(p *Kprobe) {
		any = any || m.text.Text.Contains(p.Addr) || m.text.Init.Contains(p.Addr)
	})
	return any
}

// ModuleState implements probepoint.Modules.
func (v *liveView) ModuleState(name string) probepoint.ModuleState {
	if m := v.k.mods.named(name); m != nil && m.state != probepoint.ModuleUnformed {
		return m.state
	}
	return probepoint.ModuleLive
}

// Blacklisted leaves out the entries of modules that have gone.
func (v *liveView) Blacklisted(addr x86.Addr) (x86.Range, bool) {
	r, ok := v.View.Blacklisted(addr)
	for _, m := range v.k.mods {
		if ok && m.state == probepoint.ModuleGoing && (m.text.Text.Contains(r.Start) || m.text.Init.Contains(r.Start)) {
			return x86.Range{}, false
		}
	}
	return r, ok
}
