package bpftrace

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"kprobelab/internal/script/host"
)

// expansion is the way in which bpftrace makes programs of a point.
type expansion uint8

const (
	// once: a program at the place that the point names.
	once expansion = iota
	// linked: one program, linked to all functions that the pattern fits.
	linked
	// each: a program for each that the pattern fits.
	each
)

// expansionOf returns the expansion of a point.
func (c *checker) expansionOf(pt *point) expansion {
	switch pt.provider {
	case "kprobe", "kretprobe":
		switch {
		case wild(pt.target), wild(pt.name) && (pt.target != "" || c.k == nil || c.k.Ways == nil || !c.k.Ways.Links()):
			return each
		case wild(pt.name):
			return linked
		}
	case "rawtracepoint":
		if wild(pt.name) {
			return each
		}
	case "uprobe", "uretprobe":
		switch {
		case !wild(pt.name) && !wild(pt.target):
		case c.k != nil && c.k.Ways != nil && c.k.Ways.ProgramLinks():
			return linked
		default:
			return each
		}
	case "fentry", "fexit", "tracepoint":
		if starred(pt.target) || starred(pt.name) {
			return each
		}
	}
	return once
}

// maxParameters is the maximum number of parameters of a function: to a function with
// more, the tool does not attach fentry by a pattern.
const maxParameters = 6

// matches returns the entries of the tool's list that a point fits, in the list's order:
// FUNCTION, MODULE:FUNCTION, SYSTEM:EVENT or EVENT.
func (c *checker) matches(pt *point) []string {
	if c.k == nil {
		return pt.matched
	}
	switch pt.provider {
	case "kprobe", "kretprobe":
		if pt.target == "" {
			return c.traceable().matching(pt.name, false, nil)
		}
		return c.traceable().matching(pt.target+":"+pt.name, true, nil)
	case "fentry", "fexit":
		target := pt.target
		if target == "" && wild(pt.name) {
			target = "*"
		}
		return c.traceable().matching(target+":"+pt.name, true, func(function, module string) bool {
			n, ok := c.k.Ways.Typed(function, module)
			return ok && n <= maxParameters
		})
	case "tracepoint":
		return fitting(pt.target+":"+pt.name, c.events())
	case "rawtracepoint":
		var names []string
		for _, e := range c.events() {
			if system, name, _ := strings.Cut(e, ":"); system != "syscalls" {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return fitting(pt.name, slices.Compact(names))
	case "uprobe", "uretprobe":
		return pt.matched
	}
	return []string{""}
}

// events are the names of all events, SYSTEM:EVENT, sorted.
func (c *checker) events() []string {
	if c.eventNames == nil && c.k != nil && c.k.EventNames != nil {
		c.eventNames = slices.Clone(c.k.EventNames())
		slices.Sort(c.eventNames)
	}
	return c.eventNames
}

// formats are Kernel.Formats.
func (c *checker) formats() map[string]bool {
	if c.formatNames == nil {
		if c.formatNames = map[string]bool{}; c.k != nil && c.k.Formats != nil {
			c.formatNames = c.k.Formats()
		}
	}
	return c.formatNames
}

// fitting returns the names that a pattern fits.
func fitting(pattern string, names []string) (list []string) {
	for _, n := range names {
		if match(pattern, n) {
			list = append(list, n)
		}
	}
	return list
}

// expand finds the probes of the points in the kernel, in bpftrace's order. It stops at
// the first step with an error.
func (c *checker) expand() {
	c.eachPoint(c.inModule)
	if c.errors() > 0 {
		return
	}
	c.eachPoint(func(pt *point) {
		pt.expansion = c.expansionOf(pt)
		switch pt.provider {
		case "kprobe", "kretprobe", "fentry", "fexit":
			c.expandFunctions(pt)
		case "rawtracepoint":
			c.expandRaw(pt)
		}
	})
	for _, p := range c.t.probes {
		c.signatures(p)
	}
	if c.errors() > 0 {
		return
	}
	c.eachPoint(func(pt *point) {
		if pt.provider == "tracepoint" && c.errors() == 0 {
			c.expandEvents(pt)
		}
	})
}

func (c *checker) eachPoint(do func(*point)) {
	for _, c.probe = range c.t.probes {
		for _, pt := range c.probe.points {
			if !pt.skip {
				do(pt)
			}
		}
	}
}

// inModule finds the module of a function that fentry names without one.
func (c *checker) inModule(pt *point) {
	if pt.provider[0] != 'f' || pt.target != "" || starred(pt.name) {
		return
	}
	switch in := c.traceable()[pt.name]; {
	case len(in) == 1:
		pt.target = in[0]
	case len(in) > 1:
		c.error(pt.at, "ambiguous attach point, please specify module containing the function '%s'", pt.name)
	}
}

func (c *checker) expandFunctions(pt *point) {
	if c.k == nil || c.k.Functions == nil {
		return
	}
	if pt.expansion == once {
		if p := c.atFunction(pt, pt.target, pt.name); p != nil {
			pt.add(p, "")
		}
		return
	}
	for _, m := range c.matches(pt) {
		module, name, in := strings.Cut(m, ":")
		if !in {
			module, name = "", m
		}
		if p := c.atFunction(pt, module, name); p != nil {
			pt.add(p, m)
		}
	}
}

// atFunction returns a probe at a function, nil if the name is not known. If several functions
// have the name it takes the first one, as in kallsyms.
func (c *checker) atFunction(pt *point, module, name string) *host.Probe {
	for _, f := range c.k.Functions(name) {
		if module == vmlinux && f.Module != "" || module != "" && module != vmlinux && f.Module != module {
			continue
		}
		p := &host.Probe{Kind: host.Call, Symbol: f.Name, Module: f.Module, Addr: f.Addr, Function: f.Name, Point: pt.provider + ":" + f.Name}
		if module != "" {
			p.Point = pt.provider + ":" + module + ":" + f.Name
		}
		if pt.provider[0] == 'f' {
			p.Chain = host.BySite
		}
		if pt.offset != 0 && pt.expansion != linked {
			p.Offset, p.Addr = uint64(pt.offset), p.Addr+uint64(pt.offset)
			p.Point = fmt.Sprintf("%s+%d", p.Point, pt.offset)
		}
		if pt.provider == "kretprobe" || pt.provider == "fexit" {
			p.Kind = host.Return
		}
		return p
	}
	return nil
}

// add notes a probe of a point, with the entry of bpftrace's list that it stands for.
func (pt *point) add(p *host.Probe, matched string) {
	pt.probes = append(pt.probes, p)
	pt.matched = append(pt.matched, matched)
}

func (c *checker) expandRaw(pt *point) {
	if c.k == nil || c.k.Tracepoints == nil {
		return
	}
	names := []string{pt.name}
	if pt.expansion == each {
		names = c.matches(pt)
	}
	for _, name := range names {
		for _, t := range c.k.Tracepoints(name) {
			pt.add(&host.Probe{Kind: host.Trace, Symbol: t.Name, Function: t.Name, Point: "rawtracepoint:" + t.Name, Trace: &t, Chain: host.ByCaller}, name)
		}
	}
}

func (c *checker) expandEvents(pt *point) {
	if c.k == nil || c.k.Events == nil {
		return
	}
	full := pt.target + ":" + pt.name
	names := []string{full}
	if wild(pt.target) || wild(pt.name) {
		found := false
		glob := strings.ReplaceAll(full, ":", "/")
		fits := func(e string) {
			ok, _ := path.Match(glob, strings.ReplaceAll(e, ":", "/"))
			found = found || ok
		}
		for _, e := range c.events() {
			fits(e)
		}
		for e := range c.formats() {
			fits(e)
		}
		if names = c.matches(pt); !found && !pt.optional {
			c.error(pt.at, "tracepoints not found: %s", full)
			c.meant(pt, c.error)
		}
	}
	for _, name := range names {
		for _, e := range c.k.Events(name) {
			pt.events = append(pt.events, &e)
			pt.add(eventProbe(&e), name)
		}
	}
	_, formatted := c.formats()[full]
	switch {
	case len(pt.events) > 0 || formatted || pt.optional || wild(pt.target) || wild(pt.name):
	case len(c.probe.points) > 1:
		pt.optional = true // the others may be there
		c.problems.warn(pt.at, "tracepoint not found: %s", full)
		c.meant(pt, c.problems.warn)
	default:
		c.error(pt.at, "tracepoint not found: %s", full)
		c.meant(pt, c.problems.warn)
	}
}

// meant hints at syscalls:NAME for a point that is written syscall:NAME.
func (c *checker) meant(pt *point, say func(at span, format string, a ...any)) {
	if pt.target == "syscall" {
		say(pt.at, "Did you mean syscalls:%s?", pt.name)
	}
}

func eventProbe(e *Event) *host.Probe {
	p := &host.Probe{Kind: host.Trace, Symbol: e.Tracepoint, Function: e.Tracepoint, Point: "tracepoint:" + e.Name, Chain: host.ByProgram}
	switch {
	case e.Record:
		p.Record, p.Chain = e.Name, host.ByCaller
	case e.Chained:
		p.Above, p.Chain = e.Above, host.ByCaller
	}
	return p
}
