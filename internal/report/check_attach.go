package report

import (
	"fmt"
	"slices"
	"strings"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/kprobes/rule"
)

// BPF programs that are no kprobes, and attach to the kernel's code.

// trampoline answers for a program at a function's fentry site (5.5 and later). The loader finds
// the function's number in BTF; the verifier asks its type, its address and the kernel's lists; then
// the kernel puts a call in the place of the site's nop.
func (k *checker) trampoline(p *Probe) CheckCell {
	c := CheckCell{Runs: RunsTrampoline}
	q := *p
	if p.kind == "lsm" {
		q.place = hookPrefix + p.place
	}
	// vmlinux names the kernel itself in the place of a module.
	q.place = strings.TrimPrefix(q.place, vmlinuxPrefix)
	k.find(&c, &q, probepoint.Request{Symbol: q.place})
	if err := k.trampolineRefuses(&q, c.Found); err != nil {
		c.refuseAs(err)
		c.Runs = ""
	}
	k.absent(&c, &q)
	return c
}

const (
	// hookPrefix begins the names of the functions at which programs of security hooks are.
	hookPrefix    = "bpf_lsm_"
	vmlinuxPrefix = "vmlinux:"
)

// trampolineRefuses asks in the order in which loader and kernel ask.
func (k *checker) trampolineRefuses(p *Probe, found Found) error {
	refuse := func(no errno.Errno, id rule.ID, why string) error {
		return &probepoint.Refusal{Errno: no, Rule: id, Why: why}
	}
	if no, ok := k.noPrograms(p); ok {
		return no
	}
	c := k.Profile()
	if !c.Built.BTF || !k.Typed() {
		return refusal(errno.ESRCH, rule.NoTypes)
	}
	module, name, _ := p.symbol()
	id, typed := k.FuncID(name)
	if !typed || module != "" && !k.inModule(module, name) {
		return refusal(errno.ESRCH, rule.NoFunction)
	}
	passed, _ := k.Passed(name)
	s, there := k.first(p.place)
	switch {
	case passed.Refused != "":
		return refuse(errno.EINVAL, rule.FuncType, passed.Refused+", which a trampoline cannot pass on")
	case passed.Struct && !c.BPF.StructArgs:
		return refuse(errno.EINVAL, rule.FuncType, "the function takes a structure, which a trampoline passes on from 6.1 on")
	case passed.Union && !c.BPF.UnionArgs:
		return refuse(errno.EINVAL, rule.FuncType, "the function takes a union, which a trampoline does not pass on in this release")
	case !there && found == FoundClone:
		return refusal(errno.ENOENT, rule.Clone)
	case !there:
		return refusal(errno.ENOENT, rule.UnknownSymbol)
	case p.asleep && !k.maySleep(p, name, id, s):
		why := "programs may not sleep at the function: neither ALLOW_ERROR_INJECTION nor a set of the kernel lists it"
		if p.kind == "lsm" {
			why = "programs may not sleep at the hook: sleepable_lsm_hooks does not list it"
		}
		return refuse(errno.EINVAL, rule.MayNotSleep, why)
	case p.kind == "fmod_ret" && !p.asleep && !k.mayModify(name, id, s):
		return refusal(errno.EINVAL, rule.Unmodifiable)
	}
	if err := k.denied(p, id); err != nil {
		return err
	}
	_, init := k.InInit(s.Addr)
	// An image that is no kernel has no sites; all its functions count as traced (Ways.Traced).
	noSite := !k.Traceable(s.Addr) && (k.Traces() || !c.Built.Ftrace)
	switch {
	case passed.Words > c.BPF.Words:
		return refuse(errno.ENOTSUPP, rule.ManyWords, fmt.Sprintf("the function takes %d words of arguments, and a trampoline passes on %d (12 from 6.6 on)", passed.Words, c.BPF.Words))
	case noSite && (init || !k.InText(s.Addr)):
		return refuse(errno.EINVAL, rule.NoSite, "the function is boot's, and its code is freed")
	case noSite:
		return refusal(errno.EBUSY, rule.NoSite)
	case !c.Built.DirectCalls:
		return refuse(errno.ENOTSUPP, rule.NoPrograms, "an ftrace site of this kernel cannot call a trampoline (no CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS)")
	}
	return nil
}

// denied looks the function up in the kernel's lists.
func (k *checker) denied(p *Probe, id int) error {
	refuse := func(id rule.ID, why string) error {
		return &probepoint.Refusal{Errno: errno.EINVAL, Rule: id, Why: why}
	}
	if p.kind == "lsm" {
		if off, _ := k.listed(kimage.SetHooksOff, id); off {
			return refuse(rule.NoHook, "the kernel keeps programs from the hook (bpf_lsm_disabled_hooks)")
		}
		if in, known := k.listed(kimage.SetHooks, id); known && !in {
			return refusal(errno.EINVAL, rule.NoHook)
		}
		return nil
	}
	if in, _ := k.listed(kimage.SetDenied, id); in {
		return refusal(errno.EINVAL, rule.Denied)
	}
	if in, _ := k.listed(kimage.SetNoReturn, id); in && p.kind != "fentry" {
		return refuse(rule.Denied, "the function does not return, so that no program comes to run after it (noreturn_deny)")
	}
	return nil
}

// inModule reports whether a loaded module has a function of the name.
func (k *checker) inModule(module, name string) bool {
	return k.loaded(module) && len(k.Lookup(module+":"+name)) > 0
}

// iterPrefix begins the names of the functions for the kernel's iterators in BTF. They
// are init text, so a booted kernel has no symbols of them.
const iterPrefix = "bpf_iter_"

// iterator answers for a program that a kernel runs for each of a kind of its objects
// (5.8 and later).
func (k *checker) iterator(p *Probe) CheckCell {
	c := CheckCell{Found: FoundUnique, Runs: RunsIterator}
	if err := k.iteratorRefuses(p); err != nil {
		c.refuseAs(err)
		c.Found, c.Runs = FoundAbsent, ""
	}
	return c
}

func (k *checker) iteratorRefuses(p *Probe) error {
	if no, ok := k.noPrograms(p); ok {
		return no
	}
	name := iterPrefix + p.place
	_, typed := k.FuncID(name)
	passed, _ := k.Passed(name)
	list := k.Programs().Iterators
	i := slices.IndexFunc(list, func(t kimage.Iterator) bool { return t.Name == p.place })
	switch {
	case !k.Profile().Built.BTF || !k.Typed():
		return refusal(errno.ESRCH, rule.NoTypes)
	case !typed:
		return &probepoint.Refusal{Errno: errno.ESRCH, Rule: rule.NoFunction, Why: "the kernel's BTF has no " + name + ", so no iterator of the name"}
	case passed.Refused != "":
		return &probepoint.Refusal{Errno: errno.EINVAL, Rule: rule.FuncType, Why: passed.Refused}
	case len(list) == 0: // not known
	case i < 0:
		return &probepoint.Refusal{Errno: errno.EINVAL, Rule: rule.NoFunction, Why: name + " is a function of the kernel's, and no iterator"}
	case p.asleep && !list[i].Asleep:
		return &probepoint.Refusal{Errno: errno.EINVAL, Rule: rule.MayNotSleep, Why: "a program of this iterator may not sleep"}
	case list[i].Wants != 0:
		return refusal(list[i].Wants, rule.Wanting)
	}
	return nil
}

// tracepoint answers for a program at a tracepoint: by its event, SYSTEM/NAME, or by
// its name alone.
func (k *checker) tracepoint(p *Probe) CheckCell {
	c := CheckCell{Found: FoundUnique, Runs: RunsTracepoint}
	if no, ok := k.noPrograms(p); ok {
		c.refuseAs(no)
		c.Found, c.Runs = FoundAbsent, ""
		return c
	}
	list := k.tracepoints()
	if len(list) == 0 {
		return CheckCell{NotAsked: true, Reason: rule.NotAsked, Detail: "the image's symbols do not lead to its tracepoints"}
	}
	system, name, _ := strings.Cut(p.place, "/")
	if p.Via == ViaRaw {
		system, name = "", p.place
	}
	var elsewhere string
	for _, t := range list {
		switch {
		case t.Name != name:
		case p.Via == ViaRaw && t.Raw, p.Via == ViaTracepoint && t.System == system && system != "": // one without an event is in no folder
			if t.Module != "" {
				c.Found, c.Others = FoundModule, []string{t.Module}
			}
			return c
		case p.Via == ViaTracepoint && t.System != "":
			elsewhere = t.System + "/" + t.Name
		}
	}
	// A kernel with one of the modules loaded (no map) loads no further ones.
	if modules := k.Package(kimage.TracepointPrefix + name); len(modules) > 0 && k.with != nil {
		if in, err := k.loading(modules[0]); err == nil {
			if c := in.tracepoint(p); c.accepted() {
				c.Found, c.Others = FoundPackage, modules
				return c
			}
		}
	}
	c.Found, c.Runs = FoundAbsent, ""
	no := errno.ENOENT
	if p.kind == "tp_btf" {
		no = errno.ESRCH
	}
	detail := rule.NoTracepoint.Why()
	if elsewhere != "" {
		detail += fmt.Sprintf("; there is %s", elsewhere)
	}
	c.refuse(no, rule.NoTracepoint, detail)
	return c
}

// tracepoints returns the kernel's tracepoints, which are gathered once.
func (k *checker) tracepoints() []kimage.Tracepoint {
	if k.points == nil {
		k.points = append([]kimage.Tracepoint{}, k.Tracepoints()...)
	}
	return k.points
}
