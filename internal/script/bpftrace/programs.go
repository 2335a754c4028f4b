package bpftrace

import (
	"fmt"
	"slices"
	"strings"

	"kprobelab/internal/script/host"
)

// bpfProgram is one BPF program that bpftrace makes of a script.
type bpfProgram struct {
	pt *point
	// name is the attach point of the program; if a pattern was expanded, each program has its own.
	// block is the name of the whole block. If the two differ, the program may fail.
	name, block string
	// function is the program's name in the object that is loaded.
	function string
	// matched is the entry of the tool's list for which the program is made; functions holds the
	// functions to which it is linked.
	matched   string
	functions []string
	probes    []*host.Probe
	// left: the program is left out when the others are loaded.
	left bool
}

// maxPrograms bounds the programs that patterns become.
const maxPrograms = 1024

// programs returns the programs of the script, in its order. A point that nothing fits has no program.
func (c *checker) programs() (list []*bpfProgram) {
	index, expanded := 0, 0
	for _, p := range c.t.probes {
		block, own := p.name(), 0
		for _, pt := range p.points {
			if pt.provider == "BEGIN" || pt.provider == "END" {
				index++
				continue
			}
			one := bpfProgram{pt: pt, block: block, name: pt.full(pt.target, pt.name)}
			if pt.expansion != each && !p.expanded(pt) {
				if own == 0 {
					index++
					own = index
				}
				if one.probes = pt.probes; pt.expansion == linked {
					if one.functions = pt.matched; len(one.functions) == 0 {
						continue
					}
				}
				one.function = functionName(one.name, own)
				list = append(list, &one)
				continue
			}
			matches := pt.matched
			if pt.expansion != each {
				matches = c.matches(pt)
			}
			if len(matches) == 0 {
				pt.probes, pt.matched, pt.events = nil, nil, nil
				continue
			}
			if expanded += len(matches); expanded > c.setting("max_bpf_progs", maxPrograms) {
				const text = "Failed to compile: Your program is trying to generate more than %d BPF programs, which exceeds the current limit of %d.\nYou can increase the limit through the BPFTRACE_MAX_BPF_PROGS environment variable."
				c.plain(text, expanded, c.setting("max_bpf_progs", maxPrograms))
				return nil
			}
			index++
			for i, m := range matches {
				copied := one
				copied.matched, copied.probes = m, pt.probesOf(i, m)
				copied.name = pt.matchedName(m)
				copied.function = functionName(copied.name, index)
				if pt.expansion == linked {
					copied.functions = []string{m} // a pattern's programs are linked, by themselves, too
				}
				list = append(list, &copied)
			}
		}
	}
	return list
}

// probesOf returns the probe of the i-th entry that a point fits. A point has probes for what the kernel has: an entry
// of the tool's lists that is not there has none.
func (pt *point) probesOf(i int, matched string) []*host.Probe {
	if pt.expansion != each {
		for at, name := range pt.matched {
			if name == matched {
				return pt.probes[at : at+1]
			}
		}
		if i < len(pt.matched) && pt.matched[i] != "" {
			return nil
		}
	}
	if i >= len(pt.probes) {
		return nil
	}
	return pt.probes[i : i+1]
}

// expanded reports whether a point that is no pattern is looked for in the tool's lists all
// the same: for the names of probes, and for the fields of events.
func (p *probe) expanded(pt *point) bool { return p.named || p.fields && pt.provider == "tracepoint" }

// functionName returns the name of a program in the object that is loaded.
func functionName(name string, index int) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, name)
	return fmt.Sprintf("%s_%d", clean, index)
}

// name is a block's: of all of its points.
func (p *probe) name() string {
	var list []string
	for _, pt := range p.points {
		list = append(list, pt.full(pt.target, pt.name))
	}
	return strings.Join(list, ",")
}

// full is the name of a point, or of what is made of it.
func (pt *point) full(target, name string) string {
	n := pt.provider
	for _, part := range []string{target, pt.language} {
		if part != "" {
			n += ":" + part
		}
	}
	if name != "" {
		if n += ":" + name; pt.offset != 0 {
			n += fmt.Sprintf("+%d", pt.offset)
		}
	}
	numbers, mode := []uint64{pt.address, pt.freq}, ""
	if w := pt.watched; w != nil {
		numbers, mode = []uint64{w.addr, w.size}, ":"+w.mode
	}
	for _, v := range numbers {
		if v != 0 {
			n += fmt.Sprintf(":%d", v)
		}
	}
	return n + mode
}

// matchedName returns the name of the program made of a point for one entry that the point fits.
func (pt *point) matchedName(matched string) string {
	module, name, in := strings.Cut(matched, ":")
	if !in {
		module, name = pt.target, matched
	}
	return pt.full(module, name)
}

// place is the module, "" where none is named, and the function of a program.
func (p *bpfProgram) place() (module, function string) {
	if m, f, in := strings.Cut(p.matched, ":"); in {
		return m, f
	}
	if p.matched != "" {
		return p.pt.target, p.matched
	}
	return p.pt.target, p.pt.name
}

// drop takes the probes of a program out of its point.
func (p *bpfProgram) drop() {
	pt := p.pt
	for _, gone := range p.probes {
		i := slices.Index(pt.probes, gone)
		if i < 0 {
			continue
		}
		pt.probes, pt.matched = slices.Delete(slices.Clone(pt.probes), i, i+1), slices.Delete(slices.Clone(pt.matched), i, i+1)
		if i < len(pt.events) {
			pt.events = slices.Delete(slices.Clone(pt.events), i, i+1)
		}
	}
}
