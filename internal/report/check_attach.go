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

// errorInjection is how the names of the records of ALLOW_ERROR_INJECTION begin.
const errorInjection = "_eil_addr_"

// The kernel's lists of functions that take no trampoline, and of those that take none
// that runs at the return. Where the image has no symbols of data, they are not known.
const (
	setDenied   = "btf_id_deny"
	setNoReturn = "noreturn_deny"
)

// BTFSets are the sets that Check asks a Kernel for.
var BTFSets = []string{setDenied, setNoReturn}

// trampoline answers for a program at a function's fentry site (5.5 and later). The
// loader finds the function's number in BTF, and the kernel puts a call in the place of
// the site's nop.
func (k *checker) trampoline(p *Probe) CheckCell {
	c := CheckCell{Runs: RunsTrampoline}
	q := *p
	if p.kind == "lsm" {
		q.place = "bpf_lsm_" + p.place
	}
	k.find(&c, &q, probepoint.Request{Symbol: q.place})
	_, name, _ := q.symbol()
	s, there := k.first(q.place)
	id, typed := k.FuncID(name)
	_, able := k.first("bpf_trampoline_link_prog")
	switch {
	case k.Types().Empty():
		c.refuse(errno.ESRCH, rule.NoTypes, rule.NoTypes.Why())
	case !able:
		c.refuse(errno.EINVAL, rule.NoTypes, "this kernel puts no programs at functions (5.5 and later, with CONFIG_BPF_JIT)")
	case !typed:
		c.refuse(errno.ESRCH, rule.NoFunction, rule.NoFunction.Why())
	case !there && c.Found == FoundClone:
		c.refuse(errno.ENOENT, rule.Clone, rule.Clone.Why())
	case !there:
		c.refuse(errno.ENOENT, rule.UnknownSymbol, rule.UnknownSymbol.Why())
	case !k.Traceable(s.Addr):
		c.refuse(errno.EBUSY, rule.NoSite, rule.NoSite.Why())
	case p.kind == "fmod_ret" && !k.overridable(name):
		c.refuse(errno.EINVAL, rule.NoSite, "a program may change only what functions return that ALLOW_ERROR_INJECTION lists, or that are security_…")
	}
	if typed && p.kind != "lsm" {
		switch {
		case slices.Contains(k.BTFSet(setDenied), id):
			c.refuse(errno.EINVAL, rule.Denied, rule.Denied.Why())
		case p.kind != "fentry" && slices.Contains(k.BTFSet(setNoReturn), id):
			c.refuse(errno.EINVAL, rule.Denied, "the function does not return, so that no program comes to run after it (noreturn_deny)")
		}
	}
	if c.Errno != 0 {
		c.Runs = ""
	}
	k.absent(&c, &q)
	return c
}

// iterPrefix begins the names of the functions by which BTF knows the kernel's iterators.
// They are init text, so that a booted kernel has no symbol of them.
const iterPrefix = "bpf_iter_"

// iterator answers for a program that a kernel runs for each of a kind of its objects
// (5.8 and later).
func (k *checker) iterator(p *Probe) CheckCell {
	c := CheckCell{Found: FoundUnique, Runs: RunsIterator}
	_, typed := k.FuncID(iterPrefix + p.place)
	_, able := k.first("bpf_iter_reg_target")
	switch {
	case k.Types().Empty():
		c.refuse(errno.ESRCH, rule.NoTypes, rule.NoTypes.Why())
	case !able:
		c.refuse(errno.EINVAL, rule.NoTypes, "this kernel has no iterators (5.8 and later)")
	case !typed:
		c.refuse(errno.ESRCH, rule.NoFunction, "the kernel's BTF has no "+iterPrefix+p.place+", so no iterator of the name")
	}
	if c.Errno != 0 {
		c.Found, c.Runs = FoundAbsent, ""
	}
	return c
}

// overridable reports whether a fmod_ret program may be at a function, as far as the
// image's symbols tell. Without FUNCTION_ERROR_INJECTION the list is empty; without
// a symbol of any of its records, the function is taken to be on it.
func (k *checker) overridable(name string) bool {
	if strings.HasPrefix(name, "security_") {
		return true
	}
	if _, ok := k.first("within_error_injection_list"); !ok {
		return false
	}
	if _, ok := k.first(errorInjection + name); ok {
		return true
	}
	for _, s := range k.Symbols() {
		if strings.HasPrefix(s.Name, errorInjection) {
			return false
		}
	}
	return true
}

// tracepoint answers for a program at a tracepoint: by its event, SYSTEM/NAME, or by
// its name alone.
func (k *checker) tracepoint(p *Probe) CheckCell {
	c := CheckCell{Found: FoundUnique, Runs: RunsTracepoint}
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
		case p.Via == ViaRaw && t.Raw, p.Via == ViaTracepoint && t.System == system:
			if t.Module != "" {
				c.Found, c.Others = FoundModule, []string{t.Module}
			}
			return c
		case p.Via == ViaTracepoint && t.System != "":
			elsewhere = t.System + "/" + t.Name
		}
	}
	// With one of the modules loaded (no map), it is asked no further.
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

// tracepoints are the kernel's, which are gathered once.
func (k *checker) tracepoints() []kimage.Tracepoint {
	if k.points == nil {
		k.points = append([]kimage.Tracepoint{}, k.Tracepoints()...)
	}
	return k.points
}
