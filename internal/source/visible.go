package source

import (
	"debug/dwarf"
	"strings"

	"kprobelab/internal/bounded"
	"kprobelab/internal/ctype"
)

// Visible are the variables that have a location at the place, in the order in which SystemTap looks
// for them: the innermost block's first, the function's last.
func (p *Place) Visible() (out []*Variable, err error) {
	defer guard(&err)
	if p.scope == nil {
		return p.variables, nil
	}
	in := p.scope
	for block := in; p.inner && block != nil; {
		in = block
		block = nil
		for _, c := range in.children {
			if c.Tag == dwarf.TagLexDwarfBlock && c.hasPC(p.Addr) {
				block = c
				break
			}
		}
	}
	for {
		for _, c := range in.children {
			if !isVariable(c) || c.name() == "" || c.unit.typeOf(c) == ctype.None {
				continue
			}
			if len(out) == bounded.Variables {
				return nil, p.tooMany()
			}
			if v, ok := p.visible(c); ok {
				out = append(out, v)
			}
		}
		if in == p.scope || in.parent == nil {
			return out, nil
		}
		in = in.parent
	}
}

// fentry is the length of the call with which a function begins that is compiled for tracing. GCC's
// locations begin after it, although nothing is moved by it (sourceware bug 15123).
const fentry = 5

// visible is a variable that has a location at the place.
func (p *Place) visible(n *node) (*Variable, bool) {
	v := p.variable(n, false)
	if c, _ := n.integrate(dwarf.AttrConstValue); c != nil {
		return v, true
	}
	spans := n.spans(dwarf.AttrLocation)
	if raw, ok := exprAt(spans, p.Addr); ok && len(raw) > 0 {
		return v, true
	}
	producer, _ := p.unit().root.Val(dwarf.AttrProducer).(string)
	if entry, ok := p.fn.entry(); !ok || entry != p.Addr || !strings.Contains(producer, "-mfentry") {
		return nil, false
	}
	raw, ok := exprAt(spans, p.Addr+fentry)
	if !ok || len(raw) == 0 {
		return nil, false
	}
	v.Location = p.expression(n, raw)
	return v, true
}
