package bpftrace

import (
	"fmt"

	"kprobelab/internal/script/host"
	"kprobelab/internal/source"
)

// place returns the source's description of the entry of a probe's function.
func (c *checker) place(p *host.Probe) *source.Place {
	if p.Place == nil && c.k != nil && c.k.Source != nil && p.Symbol != "" {
		c.k.Source.Places(source.Where{Function: p.Symbol}, func(at *source.Place) error {
			if p.Place == nil {
				p.Place = at
			}
			return nil
		})
	}
	return p.Place
}

// signatures reports the mistakes in a block that uses parameters of functions by their
// names, or the functions' results: once for each use, as bpftrace does.
func (c *checker) signatures(p *probe) {
	if c.k == nil || c.k.Ways == nil {
		return
	}
	uses := 0
	if p.pred != nil {
		p.pred.each(func(n *node) { uses += n.asksSignature() })
	}
	for _, n := range p.body {
		n.each(func(n *node) { uses += n.asksSignature() })
	}
	block := ""
	for range uses {
		for _, pt := range p.points {
			if pt.provider != "fentry" && pt.provider != "fexit" {
				continue
			}
			text, ok := c.signature(pt)
			if !ok {
				return
			}
			if block != "" && text != block {
				c.error(pt.at, "Probe has attach points with mixed arguments")
			} else {
				block = text
			}
		}
	}
}

// asksSignature is 1 for args and retval.
func (n *node) asksSignature() int {
	if n.op == nBuiltin && (n.text == "args" || n.text == "retval") {
		return 1
	}
	return 0
}

// signature is the parameters of a point's functions, and what they return, as text. A
// pattern whose functions differ has the first one's.
func (c *checker) signature(pt *point) (text string, ok bool) {
	ret := pt.provider == "fexit"
	if pt.expansion == once {
		text, err := c.signatureOf(pt.name, ret)
		if err != "" {
			c.error(pt.at, "fentry:%s: %s", pt.name, err)
		}
		return text, err == ""
	}
	for _, p := range pt.probes {
		one, err := c.signatureOf(p.Symbol, ret)
		switch {
		case err != "":
			c.missed("fentry:%s: %s", pt.name, err)
		case text == "":
			text = one
		case text != one:
			c.error(pt.at, "Probe has attach points with mixed arguments")
			return text, true
		}
	}
	return text, true
}

// signatureOf returns the signature of a function, or in err the reason why it has none.
func (c *checker) signatureOf(function string, ret bool) (text, err string) {
	parameters, typed := c.k.Ways.Typed(function, "")
	_, known := c.traceable()[function]
	switch {
	case !typed:
		return "", "no BTF data for " + function
	case c.k.Ways.Traces() && !known:
		return "", `function not traceable (probably it is inlined or marked as "notrace")`
	case parameters > maxParameters:
		return "", "functions with more than 6 parameters are not supported."
	}
	at := c.place(&host.Probe{Symbol: function})
	if at == nil {
		return "", "no BTF data for " + function
	}
	vars, _ := at.Variables()
	for _, v := range vars {
		if v.Parameter {
			text += fmt.Sprintf("%s %s;", fromC(v.Type), v.Name)
		}
	}
	if ret {
		text += fromC(at.Returns()).String()
	}
	return text + ".", ""
}

// each calls do with a node and all below it.
func (n *node) each(do func(*node)) {
	if n == nil {
		return
	}
	do(n)
	for _, list := range [][]*node{n.kids, n.body, n.other} {
		for _, k := range list {
			k.each(do)
		}
	}
}
