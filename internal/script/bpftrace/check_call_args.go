package bpftrace

// count checks how many arguments a call has.
func (c *checker) count(n *node, least, most int) bool {
	have := len(n.kids)
	plural := func(k int) string {
		switch k {
		case 0:
			return "no arguments"
		case 1:
			return "one argument"
		}
		return itoa(k) + " arguments"
	}
	switch {
	case least == most && have != least:
		if most > 0 && varArgs[n.text] {
			break
		}
		c.error(n.at, "%s() requires %s (%d provided)", n.text, plural(least), have)
		return false
	}
	switch {
	case have < least:
		c.error(n.at, "%s() requires at least %s (%d provided)", n.text, plural(least), have)
		return false
	case have > most && most == 0:
		c.error(n.at, "%s() requires no arguments (%d provided)", n.text, have)
		return false
	case have > most:
		c.error(n.at, "%s() takes up to %s (%d provided)", n.text, plural(most), have)
		return false
	}
	return true
}

// varArgs are the functions for which bpftrace takes the number of arguments for a range, even if both ends are the same.
var varArgs = setOf("has_key strftime signal override")

func itoa(n int) string {
	if n >= 10 {
		return itoa(n/10) + itoa(n%10)
	}
	return string(rune('0' + n))
}

// arg checks the type of an argument.
func (c *checker) arg(n *node, i int, want Kind, literal bool) bool {
	a := n.kids[i]
	switch {
	case literal && (!a.literal() || a.typ.kind() != want):
		if want == String && a.op == nParam {
			c.plain("Use str($%d) to treat $%d as a string", a.num, a.num)
		}
		c.error(n.at, "%s() expects a %s literal (%s provided)", n.text, want, a.typ.kind())
		return false
	case c.final && a.typ.kind() != want:
		c.error(n.at, "%s() only supports %s arguments (%s provided)", n.text, want, a.typ.kind())
		return false
	}
	return true
}

// literalText is a text that is known beforehand. What has none is told at once, without a place.
func (c *checker) literalText(n *node) string {
	switch {
	case n.op == nString:
		return n.text
	case n.op == nCall && n.text == "str" && n.post && n.kids[0].op == nParam:
		return c.param(int(n.kids[0].num))
	}
	c.plainAtOnce("Expected string literal, got %s", n.typ)
	return ""
}

// toMap checks that a call's value goes straight to a map; alone that it goes nowhere.
func (c *checker) toMap(n *node) {
	if !n.forMap {
		c.error(n.at, "%s() should be directly assigned to a map", n.text)
	}
}

func (c *checker) alone(n *node) {
	if n.forMap || n.forVar || n.forKey {
		c.error(n.at, "%s() should not be used in an assignment or as a map key", n.text)
	}
}
