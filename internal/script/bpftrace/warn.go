package bpftrace

import "fmt"

// warn notes what does not look right and is accepted all the same, once: when all types are known.
func (c *checker) warn(at span, format string, a ...any) {
	if c.final {
		c.problems.warn(at, format, a...)
	}
}

func (p *Problems) warn(at span, format string, a ...any) {
	p.warnings = append(p.warnings, &Problem{Warning: true, Message: fmt.Sprintf(format, a...), at: at})
}

// atOnce says what the tool says as soon as it sees it, without counting it as an error.
func (c *checker) atOnce(at span, format string, a ...any) {
	c.problems.warnings = append(c.problems.warnings, &Problem{Message: fmt.Sprintf(format, a...), at: at})
}

// plainAtOnce is atOnce without a place.
func (c *checker) plainAtOnce(format string, a ...any) {
	c.problems.warnings = append(c.problems.warnings, &Problem{Message: fmt.Sprintf(format, a...), free: true})
}

// warnUntraceable warns if the tracer does not know a function.
func (c *checker) warnUntraceable(pt *point) {
	if wild(pt.name) || c.config["missing_probes"] == "ignore" || c.k == nil || c.k.Ways == nil || !c.k.Ways.Traces() {
		return
	}
	if _, ok := c.traceable()[pt.name]; !ok {
		c.warn(pt.at, `%s is not traceable (either non-existing, inlined, or marked as "notrace"); attaching to it will likely fail`, pt.name)
	}
}

// warnIntegers warns of an operation on two integers whose signs differ, unless a literal fits both types, and of
// divisions of signed numbers, which BPF does not have.
func (c *checker) warnIntegers(n *node, l, r *Type) {
	lv, lok := c.number(n.kids[0])
	rv, rok := c.number(n.kids[1])
	left, right := lok && lv >= 0, rok && rv >= 0
	lsign, rsign := l.Signed, r.Signed
	if lsign != rsign {
		switch {
		case lsign && left:
			lsign = false
		case rsign && right:
			rsign = false
		default:
			switch n.text {
			case "==", "!=", "<=", ">=", "<", ">":
				c.warn(n.at, "comparison of integers of different signs: '%s' and '%s' can lead to undefined behavior", l, r)
			case "+", "-", "*", "/", "%":
				c.warn(n.at, "arithmetic on integers of different signs: '%s' and '%s' can lead to undefined behavior", l, r)
			}
		}
	}
	if n.text == "/" || n.text == "%" {
		if lsign && !left || rsign && !right {
			c.warn(n.at, "signed operands for '%s' can lead to undefined behavior (cast to unsigned to silence warning)", n.text)
		}
	}
}

// warnStrings warns of a literal that is longer than the string with which it is compared.
func (c *checker) warnStrings(n *node, l, r *Type) {
	x, y, size := n.kids[0], n.kids[1], r.Size
	if !x.literal() {
		x, y, size = y, x, l.Size
	}
	if n.text == "==" && x.op == nString && !y.literal() && len(x.text) > size {
		c.warn(n.kids[0].at.with(n.kids[1].at), "The literal is longer than the variable string (size=%d), condition will always be false", size)
	}
}

// warnUnreachable warns of statements after one that leaves their block.
func (c *checker) warnUnreachable(n *node, more bool) {
	if n.op == sJump && more {
		c.warn(n.at, "All code after a '%s' is unreachable.", n.text)
	}
}

// warnPrint warns of a print() of a map that may not do what its author expects.
func (c *checker) warnPrint(n *node) {
	if c.loops > 0 {
		c.warn(n.at, "Due to it's asynchronous nature using 'print()' in a loop can lead to unexpected behavior. The map will likely be updated before the runtime can 'print' it.")
	}
	if n.kids[0].typ.Kind == Stats && len(n.kids) > 1 {
		c.warn(n.at, "print()'s top and div arguments are ignored when used on stats() maps.")
	}
}

// complexSearch is bpftrace's advice about strcontains().
const complexSearch = `
strcontains() is known to have verifier complexity issues when the product of both string sizes is larger than ~2000 bytes.

If you're seeing errors, try clamping the string sizes. For example:
` + "* `str($ptr, 16)`\n* `path($ptr, 16)`"
