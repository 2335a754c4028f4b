package bpftrace

import (
	"slices"

	"kprobelab/internal/ctype"
	"kprobelab/internal/script/host"
)

// parameterOf returns the number of a raw tracepoint's parameter, -1 if there is none of that name.
func parameterOf(p *host.Probe, name string) int {
	return slices.IndexFunc(p.Trace.Params, func(one ctype.Param) bool { return one.Name == name })
}

// truthOf returns the type of a member: C's _Bool is a truth value in 0.27.
func (c *checker) truthOf(t *Type) *Type {
	if c.o.Language.newest() && t.boolean {
		return withSpace(boolT, t.Space)
	}
	return t
}

// printedArgs makes print(args) the record of all fields of args.
func (c *checker) printedArgs(n *node) {
	x := n.kids[0]
	if x.op != nBuiltin || !x.typ.Args {
		return
	}
	all := &node{op: nRecord, at: x.at}
	for _, name := range c.argNames() {
		all.names = append(all.names, name)
		all.kids = append(all.kids, &node{op: nField, text: name, kids: []*node{x.clone()}, at: x.at})
	}
	if len(all.names) > 0 {
		n.kids[0] = all
		c.expr(all)
	}
}

// argNames returns the names of the fields of args at the block's first probe.
func (c *checker) argNames() (names []string) {
	for _, pt := range c.probe.points {
		if len(pt.events) == 0 {
			continue
		}
		for _, f := range pt.events[0].Fields {
			names = append(names, f.Name)
		}
		return names
	}
	p := c.first()
	switch {
	case p == nil:
	case p.Trace != nil:
		for _, one := range p.Trace.Params {
			names = append(names, one.Name)
		}
	default:
		if at := c.place(p); at != nil {
			vars, _ := at.Variables()
			for _, v := range vars {
				if v.Parameter {
					names = append(names, v.Name)
				}
			}
		}
	}
	return names
}
