package explore

import (
	"fmt"
	"slices"

	"kprobelab/kimage"
	"kprobelab/x86"
)

// moduleOf returns the module of a function, "" if it is in none.
func (s *Scenario) moduleOf(function string) string {
	for _, m := range s.Modules {
		if slices.Contains(m.Funcs, function) {
			return m.Name
		}
	}
	return ""
}

// Modules names them, for the subsystem.
func (w *world) Modules() (names []string) {
	for _, m := range w.s.Modules {
		names = append(names, m.Name)
	}
	return names
}

// ModuleText returns the address range of a module's text; false if there is no module of that name.
func (w *world) ModuleText(name string) (t kimage.ModuleText, ok bool) {
	for _, s := range w.symbols {
		if s.Module != name {
			continue
		}
		if !ok {
			t.Text.Start, ok = s.Addr, true
		}
		t.Text.End = s.Addr.Add(int64(s.Size))
	}
	return t, ok
}

// moduleAt returns the module whose text contains an address, "" if there is none.
func (w *world) moduleAt(a x86.Addr) string {
	if s, ok := w.SymbolAt(a); ok {
		return s.Module
	}
	return ""
}

// busy: a CPU is in a call of the module, or the module has references.
func (r *run) busy(module string) bool {
	for _, t := range r.tasks {
		if t.calling && t.inModule == module {
			return true
		}
	}
	return r.refs == module
}

// unloadModule is delete_module: no new references, the notifiers, the text out of the tables, a grace
// period, and the text is freed.
func (t *task) unloadModule(name string) {
	r, k := t.w.run, t.w.k
	if r.going[name] {
		return
	}
	r.stop(pending{kind: "module stops", reads: []int{varTasks, varMutex}, writes: []int{varModule}, ready: func() bool { return !r.busy(name) }})
	r.going[name] = true
	err := k.ModuleStops(name)
	t.locked(func() {
		if err == nil {
			err = k.ModuleGoing(name)
		}
		for _, o := range r.probes {
			if t.w.moduleAt(o.at) == name {
				o.on = false
				o.epoch++
			}
		}
		r.touch(varEpoch, true)
	})
	r.stop(pending{kind: "module unformed", writes: []int{varModule}})
	if err == nil {
		err = k.ModuleUnformed(name)
	}
	r.gracePeriod()
	r.stop(pending{kind: "module is freed", writes: []int{varModule}})
	t.w.gone[name] = true
	if err != nil {
		r.fail(Refused, "unload %s: %v", name, err)
	}
}

// loadModule is load_module after an unload: fresh text, the notifiers of jump labels and of
// probes that wait, and the module is live.
func (t *task) loadModule(name string) {
	r, w := t.w.run, t.w
	r.stop(pending{kind: "module is loaded", writes: []int{varModule}, ready: func() bool { return w.gone[name] }})
	w.gone[name], w.unlabelled = false, name
	if err := w.k.ModuleComing(name); err != nil {
		r.fail(Refused, "load %s: %v", name, err)
	}
	steps := []func(){func() { w.unlabelled = "" }, func() { t.locked(func() { t.registerWaiting(name) }) }}
	if w.c.Check.ProbesBeforeLabels {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		r.stop(pending{kind: "module notifier", writes: []int{varModule}})
		step()
	}
	if err := w.k.ModuleLive(name); err != nil {
		r.fail(Refused, "load %s: %v", name, err)
	}
	r.stop(pending{kind: "module is live", writes: []int{varModule}})
	r.going[name] = false
}

// registerWaiting registers the probes that wait for a module. What is refused is not
// there: the kernel writes a line.
func (t *task) registerWaiting(module string) {
	r := t.w.run
	for _, p := range r.probes {
		if p.OnLoad && t.w.moduleAt(p.at) == module {
			p.epoch++
			if p.used {
				r.unregister(p) // it went with the module's last text
			}
			_ = r.register(p)
			p.epoch++
		}
	}
	r.touch(varEpoch, true)
}

// expected is the error of a site that does not have the text that the patching code expects.
func (s *site) expected(w *world, on bool) error {
	want := s.nop
	if !on {
		want = s.jmp
	}
	if got := w.mem(s.at, len(want)); string(got) != string(want) {
		return fmt.Errorf("unexpected op at %s: % x", w.where(s.at), got)
	}
	return nil
}
