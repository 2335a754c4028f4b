package bpftrace

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"kprobelab/internal/bounded"
)

// condition computes a constant expression of C, from an #if or a definition. It stops at the first token that it does
// not understand.
type condition struct {
	list []string
	at   int
	// name returns the value of a name. defined reports whether a name is a macro; nil means that the
	// expression cannot use the operator defined.
	name    func(name string) (v int64, ok bool)
	defined func(name string) bool
	depth   int
	// bad is the first token that it did not understand, "" for none.
	bad string
}

// binding lists the operators level by level; the first level binds loosest.
var binding = [][]string{{"||"}, {"&&"}, {"|"}, {"^"}, {"&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}}

// operator takes one of the operators of a level, "" where there is none: the tokens are single characters.
func (c *condition) operator(level int) string {
	two := strings.Join(c.list[c.at:min(c.at+2, len(c.list))], "")
	for _, ops := range binding {
		if len(two) == 2 && slices.Contains(ops, two) {
			if !slices.Contains(binding[level], two) {
				return ""
			}
			c.at += 2
			return two
		}
	}
	if c.at < len(c.list) && slices.Contains(binding[level], c.list[c.at]) {
		c.at++
		return c.list[c.at-1]
	}
	return ""
}

func (c *condition) value(level int) int64 {
	if level == len(binding) {
		return c.unary()
	}
	x := c.value(level + 1)
	for {
		op := c.operator(level)
		if op == "" {
			return x
		}
		x = applied(op, x, c.value(level+1))
	}
}

func applied(op string, x, y int64) int64 {
	truth := func(is bool) int64 {
		if is {
			return 1
		}
		return 0
	}
	switch op {
	case "||":
		return truth(x != 0 || y != 0)
	case "&&":
		return truth(x != 0 && y != 0)
	case "|":
		return x | y
	case "^":
		return x ^ y
	case "&":
		return x & y
	case "==":
		return truth(x == y)
	case "!=":
		return truth(x != y)
	case "<=":
		return truth(x <= y)
	case ">=":
		return truth(x >= y)
	case "<":
		return truth(x < y)
	case ">":
		return truth(x > y)
	case "<<":
		return x << (y & 63)
	case ">>":
		return x >> (y & 63)
	case "+":
		return x + y
	case "-":
		return x - y
	case "*":
		return x * y
	}
	switch {
	case y == 0:
		return 0
	case op == "/":
		return x / y
	}
	return x % y
}

func (c *condition) next() string {
	if c.at < len(c.list) {
		c.at++
		return c.list[c.at-1]
	}
	return ""
}

func (c *condition) unary() int64 {
	if c.depth++; c.depth > bounded.BpftraceNesting {
		return 0
	}
	defer func() { c.depth-- }()
	switch t := c.next(); {
	case t == "!":
		return applied("==", c.unary(), 0)
	case t == "-":
		return -c.unary()
	case t == "+":
		return c.unary()
	case t == "~":
		return ^c.unary()
	case t == "(":
		v := c.value(0)
		c.next()
		return v
	case t == "defined" && c.defined != nil:
		name := c.next()
		if name == "(" {
			name = c.next()
			c.next()
		}
		if c.defined(name) {
			return 1
		}
		return 0
	case isName(t):
		v, ok := c.name(t)
		c.fail(ok, t)
		return v
	default:
		v, err := strconv.ParseInt(strings.TrimRight(t, "uUlL"), 0, 64)
		c.fail(err == nil, t)
		return v
	}
}

func (c *condition) fail(ok bool, t string) {
	if !ok && c.bad == "" {
		c.bad = fmt.Sprintf("'%s' is not a number", t)
	}
}
