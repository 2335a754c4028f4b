package run

import (
	"errors"
	"fmt"

	"kprobelab/booted"
)

// load loads the module.
func (r *runner) load(k *booted.Kernel, h *HostProgram) (*booted.Module, error) {
	if h.Module == nil {
		return nil, nil
	}
	name, code, err := h.Module.file(h.Context, r.lab.Image.Release())
	if err != nil {
		return nil, refused(OneLine(err))
	}
	m, err := k.Load(h.Context, name, code, h.Module.Parameters)
	if err == nil {
		for _, p := range m.Probes {
			r.log("module", fmt.Sprintf("%s has a %s at %s", m.Name, kindOf(&p), p.Place))
		}
		return m, nil
	}
	if m == nil {
		return nil, programError(r.lab.Image.Name(), "", err)
	}
	j := m.Judge()
	r.dmesg(j.Log)
	r.judged(m, j, "is not loaded")
	if p := (*booted.PanicError)(nil); errors.As(err, &p) || booted.Oops(j.Trouble) != "" {
		return nil, refused(OneLine(fmt.Errorf("%w: %w", ErrFailed, err)))
	}
	return nil, programError(r.lab.Image.Name(), "", err)
}

// unload unloads the module, and says what it did and has left.
func (r *runner) unload(h *HostProgram, k *booted.Kernel, m *booted.Module) error {
	if m == nil {
		return nil
	}
	j, err := m.Unload(h.Context)
	r.dmesg(j.Log)
	end := "is unloaded"
	if err != nil {
		end = "is not unloaded"
	}
	r.judged(m, j, end)
	var p *booted.PanicError
	switch {
	case errors.As(err, &p), booted.Oops(j.Trouble) != "":
		return refused(OneLine(errors.Join(fmt.Errorf("%w after the module %s was unloaded", ErrFailed, m.Name), err)))
	case err != nil:
		return refused(OneLine(err))
	case !j.Clean():
		return refused(fmt.Errorf("the module %s has left something, or did what it must not do", m.Name))
	}
	r.log("module", m.Name+" is unloaded, and has left nothing")
	return nil
}

// kindOf is the word for a probe.
func kindOf(p *booted.ModuleProbe) string {
	if p.Return {
		return "return probe"
	}
	return "probe"
}

// judged says a judgement. end is the end of the module, as a verb.
func (r *runner) judged(m *booted.Module, j *booted.Judgement, end string) {
	say := func(format string, args ...any) { r.log("module", fmt.Sprintf(format, args...)) }
	for _, p := range j.Probes {
		if p.Errno == 0 {
			say("the %s of %s at %s: %s", kindOf(&p), m.Name, p.Place, counts(&p))
		}
	}
	for _, f := range j.Faults {
		say("%s", f.Text)
	}
	for _, p := range j.Left {
		say("%s %s, and its %s at %s is still there: its next hit runs code that is gone", m.Name, end, kindOf(&p), p.Place)
	}
	for _, place := range j.Changed {
		say("%s %s, and the kernel's text at %s is not as before", m.Name, end, place)
	}
	if j.Slots > 0 {
		say("%s %s, and has not given back %s of kprobes", m.Name, end, number(uint64(j.Slots), "slot"))
	}
	if j.OptimizedSlots > 0 {
		say("%s %s, and has not given back %s of optimized kprobes", m.Name, end, number(uint64(j.OptimizedSlots), "slot"))
	}
	for _, a := range j.Memory {
		size := "memory"
		if a.Size > 0 {
			size = fmt.Sprintf("%d bytes", a.Size)
		}
		say("%s %s, and has not given back %s of %s at %s", m.Name, end, size, a.By, a.At)
	}
	if j.After > 0 {
		say("%s of %s began after its end", number(j.After, "handler"), m.Name)
	}
	if j.Ran != "" {
		say("%s", j.Ran)
	}
	for _, text := range j.Untold {
		say("not told: %s", text)
	}
}

// counts says the hits of a probe.
func counts(p *booted.ModuleProbe) string {
	text := "hits are not counted"
	if p.Counted {
		text = number(p.Hits, "hit")
		if p.Return {
			text += ", " + number(p.Returns, "return")
		}
	}
	text += fmt.Sprintf(", %d missed", p.Missed)
	if p.Exhausted > 0 {
		text += fmt.Sprintf(", %d without an instance", p.Exhausted)
	}
	return text
}

// number is a count with its noun.
func number(n uint64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
