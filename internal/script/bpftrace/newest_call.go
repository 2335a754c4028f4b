package bpftrace

import (
	"slices"
	"strconv"
	"strings"

	"kprobelab/internal/script"
)

// newestBuiltin is the type of a word that 0.27 has as a variable; nil for a word that 0.23 has, too.
func (c *checker) newestBuiltin(n *node) *Type {
	if !c.o.Language.newest() {
		return nil
	}
	switch n.text {
	case "ncpus":
		return uint64T
	case "usermode":
		return integer(1, false)
	case "probetype":
		n.op, n.text = nString, probeType(c.probe.points[0].provider)
		return stringOf(len(n.text) + 1)
	case "has_cpid":
		n.op, n.num = nBool, 1
		return boolT
	case "cpid":
		return integer(4, false)
	}
	return nil
}

// probeType returns the word that probetype has for a provider.
func probeType(provider string) string {
	switch provider {
	case "BEGIN", "END", "self", "bench", "test":
		return "special"
	}
	return provider
}

// typeTests are the functions that test the type of their argument.
var typeTests = map[string]func(t *Type) bool{
	"is_integer":          func(t *Type) bool { return t.isInt() && !t.Bool },
	"is_unsigned_integer": func(t *Type) bool { return t.isInt() && !t.Bool && !t.Signed },
	"is_str":              func(t *Type) bool { return t.Kind == String },
	"is_ptr":              func(t *Type) bool { return t.Kind == Pointer },
	"is_array":            func(t *Type) bool { return t.Kind == Array },
}

// newestCall is the type of a call of a function that 0.27 has anew, or has otherwise; nil for the others.
func (c *checker) newestCall(n *node) *Type {
	args := func(least, most int) bool {
		for _, k := range n.kids {
			c.expr(k)
		}
		return c.count(n, least, most)
	}
	switch n.text {
	case "config":
		if n.path != nil {
			return c.settingOf(n)
		}
	case "typeof":
		return c.expr(n.kids[0])
	case "typeinfo":
		c.error(n.at, "typeinfo feature is not enabled by default. To enable this unstable feature, set the config flag to enable. unstable_typeinfo=enable")
		return none
	case "exit":
		if c.looping > 0 {
			c.error(n.at, "'return' statement is not allowed in a for-loop")
		}
		return nil
	case "fail":
		c.fail(n)
		return none
	case "errorf", "warnf":
		return c.message(n)
	case "getopt":
		return c.option(n)
	case "find":
		return c.findType(n)
	case "tseries":
		return c.series(n)
	case "container_of":
		return c.container(n)
	case "is_literal":
		if args(1, 1) {
			n.kids[0].truth(n, n.kids[0].literal() || n.kids[0].op == nBool)
		}
		return boolT
	case "str_concat":
		if args(2, 2) && c.final {
			c.arg(n, 0, String, false)
			c.arg(n, 1, String, false)
		}
		if len(n.kids) == 2 {
			return withSpace(stringOf(n.kids[0].typ.Size+max(n.kids[1].typ.Size-1, 0)), script.KernelSpace)
		}
		return none
	case "strlen":
		if args(1, 1) {
			c.arg(n, 0, String, false)
		}
		return uint64T
	case "strstr":
		if args(2, 2) {
			c.arg(n, 0, String, false)
			c.arg(n, 1, String, false)
		}
		return int64T
	case "memcmp":
		args(3, 3)
		return int64T
	case "syscall_name", "signal_name", "strerror":
		if args(1, 1) && c.final && !n.kids[0].typ.isInt() {
			c.arg(n, 0, Integer, false)
		}
		return withSpace(stringOf(64), script.KernelSpace)
	case "pid", "tid":
		if len(n.kids) == 1 {
			c.call, n.kids[0].skip = n.text, true
			args(1, 1)
			c.call = ""
		}
		n.op, n.kids = nBuiltin, nil
		return c.builtin(n)
	case "delete":
		return c.deletes(n)
	case "has_key", "strcontains":
		n.known = true
		c.oldCall(n)
		return boolT
	case "signal_thread", "write_user", "dw_ustack", "kfunc_exist", "kfunc_allowed":
		for _, k := range n.kids {
			c.expr(k)
		}
		if c.final {
			c.error(n.at, "%s(): %s", n.text, newestRefusals[n.text])
		}
		return none
	}
	if test, ok := typeTests[n.text]; ok {
		if args(1, 1) && c.final {
			n.kids[0].truth(n, test(n.kids[0].typ))
		}
		return boolT
	}
	if words[n.text] == tBuiltin || slices.Contains(newestBuiltins, n.text) || words[n.text] == tCallBuiltin && len(n.kids) == 0 {
		switch {
		case n.text == "comm" && len(n.kids) == 1:
			c.error(n.at, "comm(): the name of another task is not there")
			return none
		case len(n.kids) > 0:
			c.error(n.at, "Unknown function: '%s'", n.text)
			return none
		}
		n.op = nBuiltin
		return c.builtin(n)
	}
	if k := words[n.text]; k != tCall && k != tCallBuiltin {
		for _, kid := range n.kids {
			c.expr(kid)
		}
		c.error(n.at, "Unknown function: '%s'", n.text)
		return none
	}
	return nil
}

// newestRefusals are functions of 0.27 that are not there, with the reason.
var newestRefusals = map[string]string{
	"signal_thread": "there is no task to send a signal to", "write_user": "a probe cannot write a program's memory here",
	"dw_ustack":   "programs' stacks are walked by their frame pointers alone",
	"kfunc_exist": "scripts call no functions of the kernel's here", "kfunc_allowed": "scripts call no functions of the kernel's here",
}

// truth makes a call the truth value that is known of its argument.
func (*node) truth(n *node, is bool) {
	n.op, n.num, n.kids = nBool, uint64(truth(is)), nil
}

// oldCall checks a call as 0.23 has it.
func (c *checker) oldCall(n *node) *Type {
	old := c.o.Language
	for i, k := range n.kids {
		if k.op == nMap && len(k.kids) == 0 && i == 0 && n.text == "has_key" {
			k.skip = true
		}
		c.expr(k)
	}
	c.available(n)
	t := c.function(n)
	c.o.Language = old
	return t
}

// fail reports the message of a call of fail(), which the script must not reach.
func (c *checker) fail(n *node) {
	for _, k := range n.kids {
		c.expr(k)
	}
	if !c.final || len(n.kids) == 0 {
		return
	}
	text, rest := n.kids[0].text, n.kids[1:]
	for _, d := range slices.Backward(c.o.Language.directives(text)) {
		if len(rest) == 0 {
			break
		}
		last := rest[len(rest)-1]
		rest = rest[:len(rest)-1]
		shown := last.text
		if v, ok := c.number(last); ok {
			shown = strconv.FormatInt(v, 10)
		}
		text = text[:d.from] + shown + text[d.to:]
	}
	c.error(n.at, "%s", plain(text))
}

// message checks errorf() and warnf(), whose text goes to standard error with the place of the call.
func (c *checker) message(n *node) *Type {
	for _, k := range n.kids {
		c.call, c.argument = "printf", 0
		c.expr(k)
		c.call = ""
	}
	c.alone(n)
	if c.count(n, 1, 128) && c.arg(n, 0, String, true) && c.final {
		if msg := c.format(n); msg != "" {
			c.error(n.at, "%s", msg)
		}
	}
	return none
}

// option is a named parameter of the command line: the call becomes its value.
func (c *checker) option(n *node) *Type {
	for _, k := range n.kids {
		c.expr(k)
	}
	if !c.count(n, 1, 3) || !c.arg(n, 0, String, true) {
		return none
	}
	given, ok, bare := c.named27(n.kids[0].text)
	if len(n.kids) > 1 {
		*n = *n.kids[1].clone()
	} else {
		*n = node{op: nBool, at: n.at}
	}
	if !ok {
		return c.expr(n)
	}
	switch n.op {
	case nBool:
		n.num = uint64(truth(bare || given != "0" && given != "false"))
	case nString:
		n.text = given
	default:
		v, err := parseSigned(given)
		if err != "" {
			c.error(n.at, "Invalid value for a named parameter: %s", given)
		}
		n.num, n.negative = uint64(v), v < 0
	}
	return c.expr(n)
}

// named27 returns the value of a named parameter. bare: it has none.
func (c *checker) named27(name string) (value string, ok, bare bool) {
	for _, a := range c.o.Named {
		key, value, has := strings.Cut(a, "=")
		if key == name {
			return value, true, !has
		}
	}
	return "", false, false
}

// findType checks find(@map, key, $variable).
func (c *checker) findType(n *node) *Type {
	if !c.count(n, 3, 3) {
		return boolT
	}
	m, key, v := n.kids[0], n.kids[1], n.kids[2]
	switch {
	case m.op != nMap || len(m.kids) > 0:
		c.error(m.at, "find() expects the first argument to be a map")
		return boolT
	case v.op != nVar:
		c.error(v.at, "find() expects the third argument to be a variable")
		return boolT
	}
	if n.path == nil {
		// The element's value is assigned to the variable if it is there.
		e := &node{op: nMap, text: m.text, kids: []*node{key}, at: m.at}
		n.path = []string{}
		n.body = []*node{{op: sAssign, kids: []*node{v, e}, at: n.at}}
	}
	c.statement(n.body[0])
	return boolT
}

// container makes container_of(POINTER, TYPE, MEMBER).
func (c *checker) container(n *node) *Type {
	if !c.count(n, 3, 3) {
		return none
	}
	p, of, member := n.kids[0], n.kids[1], n.kids[2]
	if of.ctype == nil || member.op != nIdent && member.op != nBuiltin {
		c.error(n.at, "container_of() expects a pointer, a type and the name of a member")
		return none
	}
	to := *of.ctype
	to.stars++
	whole := *of.ctype
	off := &node{op: nOffset, ctype: &whole, path: []string{member.text}, at: n.at}
	from := &node{op: nCast, ctype: &typeName{name: "uint64", at: p.at}, kids: []*node{p}, at: p.at}
	*n = node{op: nCast, ctype: &to, at: n.at, kids: []*node{{op: nBinary, text: "-", kids: []*node{from, off}, at: n.at}}}
	return c.expr(n)
}

// deletes checks delete(), which has a value in 0.27.
func (c *checker) deletes(n *node) *Type {
	for i, k := range n.kids {
		if k.op == nMap && len(k.kids) == 0 {
			k.skip = i == 0
		}
		c.expr(k)
	}
	c.deletion(n)
	return boolT
}

// format checks a format of 0.27, where %s prints any value.
func (c *checker) format(n *node) string {
	list, args := c.o.Language.directives(n.kids[0].text), n.kids[1:]
	if len(args) == len(list) {
		copied := *n
		copied.kids = []*node{{op: nString}}
		for i, d := range list {
			if d.verb != "s" {
				copied.kids[0].text += "%" + d.verb
				copied.kids = append(copied.kids, args[i])
			}
		}
		return c.o.Language.checkFormat(&copied)
	}
	return c.o.Language.checkFormat(n)
}
