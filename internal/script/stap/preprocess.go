package stap

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"

	"kprobelab/internal/bounded"
)

// Version is the release of SystemTap whose language this is.
const Version = "4.8"

// macro is a macro that @define defines.
type macro struct {
	params []string
	body   []*token
}

// preprocessor gives the tokens that are left after macros and conditions.
type preprocessor struct {
	passing bool // leaving out a part of a condition
	seen    bool // the script has a word
	lex     *lexer
	o       *Options
	macros  map[string]*macro
	shared  map[string]*macro // those of the library
	queue   []*token          // tokens that come before the lexer's
	open    []condition       // the conditions that are open
	made    int               // tokens that macros made
}

// condition is a condition whose parts are being read. other: it is the part after %:.
type condition struct {
	at    *token
	other bool
}

func problem(message string, at *token) *Problem {
	return &Problem{Kind: parseError, Message: message, at: at, skip: true}
}

func (p *preprocessor) raw() *token {
	if len(p.queue) > 0 {
		t := p.queue[0]
		p.queue = p.queue[1:]
		return t
	}
	t := p.lex.next()
	p.seen = p.seen || t != nil && t.message == ""
	if t != nil && t.message != "" && !(t.noArgument && p.passing) {
		panic(problem(t.message, t))
	}
	return t
}

// expanded returns the next token after the expansion of macros.
func (p *preprocessor) expanded() *token {
	for {
		t := p.raw()
		if t == nil || t.kind != operator || !strings.HasPrefix(t.text, "@") || len(t.text) == 1 {
			return t
		}
		if t.text == "@define" && !p.passing {
			p.define()
			continue
		}
		m := p.macros[t.text[1:]]
		if m == nil {
			m = p.shared[t.text[1:]]
		}
		if m == nil {
			return t
		}
		p.use(t, m)
	}
}

// define reads a macro's definition.
func (p *preprocessor) define() {
	name := p.raw()
	if name == nil || name.kind != identifier {
		panic(&Problem{Kind: parseError, Message: "expected identifier", at: name, end: p.lex.f, skip: true})
	}
	if p.macros[name.text] != nil {
		panic(problem(fmt.Sprintf("attempt to redefine macro '@%s' in the same file", name.text), name))
	}
	m := &macro{}
	t, missing := p.raw(), "expected '%(' or '('"
	if t.op("(") {
		missing = "expected '%('"
		for {
			param := p.raw()
			if param == nil || param.kind != identifier {
				panic(&Problem{Kind: parseError, Message: "expected identifier", at: param, end: p.lex.f, skip: true})
			}
			m.params = append(m.params, param.text)
			if t = p.raw(); t.op(",") {
				continue
			}
			if !t.op(")") {
				panic(&Problem{Kind: parseError, Message: "expected ',' or ')'", at: t, end: p.lex.f, skip: true})
			}
			break
		}
		t = p.raw()
	}
	if !t.op("%(") {
		panic(&Problem{Kind: parseError, Message: missing, at: t, end: p.lex.f, skip: true})
	}
	for depth := 1; ; {
		t := p.raw()
		switch {
		case t == nil:
			panic(&Problem{Kind: parseError, Message: "incomplete macro definition - missing '%)'", at: name, skip: true})
		case t.op("%("):
			depth++
		case t.op("%)"):
			if depth--; depth == 0 {
				p.macros[name.text] = m
				return
			}
		}
		m.body = append(m.body, t)
	}
}

func plural(n int, word string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, word)
	}
	return fmt.Sprintf("%d %ss", n, word)
}

// use puts a macro's body in the place of its use.
func (p *preprocessor) use(at *token, m *macro) {
	if at.inside++; at.inside > bounded.Macros {
		panic(problem(fmt.Sprintf("macros are nested deeper than %d", bounded.Macros), at))
	}
	args := map[string][]*token{}
	if n := len(m.params); n > 0 {
		t := p.raw()
		if !t.op("(") {
			panic(problem(fmt.Sprintf("expected '(' in invocation of macro '%s' taking %s", at.text, plural(n, "parameter")), t))
		}
		list, depth := [][]*token{nil}, 1
		for depth > 0 {
			t := p.raw()
			switch {
			case t == nil:
				panic(problem("could not find end of macro invocation", at))
			case t.op("("):
				depth++
			case t.op(")"):
				depth--
			case t.op(",") && depth == 1:
				if len(list) == n {
					panic(problem(fmt.Sprintf("too many parameters for macro '%s' (expected %d)", at.text, n), t))
				}
				list = append(list, nil)
				continue
			}
			if depth > 0 {
				list[len(list)-1] = append(list[len(list)-1], t)
			} else if len(list) < n {
				panic(problem(fmt.Sprintf("too few parameters for macro '%s' (expected %d)", at.text, n), t))
			}
		}
		for i, name := range m.params {
			args[name] = list[i]
		}
	}
	var out []*token
	for _, t := range m.body {
		list := []*token{t}
		if t.kind == operator && strings.HasPrefix(t.text, "@") {
			if arg, ok := args[t.text[1:]]; ok {
				list = arg
			}
		}
		for _, t := range list {
			copied := *t
			if copied.macro == nil {
				copied.macro = at
			}
			copied.inside = max(copied.inside, at.inside)
			out = append(out, &copied)
		}
	}
	if p.made += len(out) + 1; p.made > bounded.Tokens {
		panic(problem("macros make too much of the script", at))
	}
	p.queue = append(out, p.queue...)
}

// next returns the next token after the evaluation of conditions.
func (p *preprocessor) next() *token {
	for {
		t := p.expanded()
		switch {
		case t == nil:
			if len(p.open) > 0 {
				at := p.open[len(p.open)-1].at
				p.open = nil
				panic(problem(unended, at))
			}
			return nil
		case t.op("%("):
			holds := p.condition(t)
			if q := p.expanded(); !q.op("%?") {
				panic(problem("expected '%?' marker for conditional", t))
			}
			if holds {
				p.open = append(p.open, condition{at: t})
			} else if p.pass(t, true) {
				p.open = append(p.open, condition{at: t, other: true})
			}
		case t.op("%?"), t.op("%:"), t.op("%)"):
			if len(p.open) == 0 || t.op("%?") {
				panic(unopened(t))
			}
			now := p.open[len(p.open)-1]
			switch {
			case t.op("%:") && now.other:
				panic(problem(twice, t))
			case t.op("%:"):
				p.pass(now.at, false)
			}
			p.open = p.open[:len(p.open)-1]
		default:
			return t
		}
	}
}

const (
	unended = "incomplete conditional at end of file"
	twice   = "invalid conditional - duplicate '%:'"
)

// unopened is the problem of a part of a condition without its beginning. It is reported once for each word.
func unopened(t *token) *Problem {
	p := problem("incomplete conditional - missing '%('", t)
	p.site = t.text
	return p
}

// pass leaves out tokens up to the other part of a condition, and returns true, or up to the condition's
// end. other: there may be another part. pass ignores mistakes in the tokens, and @define.
func (p *preprocessor) pass(from *token, other bool) bool {
	defer func(was bool) { p.passing = was }(p.passing)
	p.passing = true
	for depth := 1; ; {
		t, wrong := p.passed()
		switch {
		case wrong:
		case t == nil:
			panic(problem(unended, from))
		case t.op("%("):
			depth++
		case t.op("%?") && depth == 1:
			panic(unopened(t))
		case t.op("%)"):
			if depth--; depth == 0 {
				return false
			}
		case t.op("%:") && depth == 1:
			if !other {
				panic(problem(twice, t))
			}
			return true
		}
	}
}

// passed returns the next token of a part that is left out; wrong means that there is a mistake.
func (p *preprocessor) passed() (t *token, wrong bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(*Problem); !ok || p.made > bounded.Tokens {
				panic(r)
			}
			wrong = true
		}
	}()
	return p.expanded(), false
}

// condition reads alternatives of conjunctions.
func (p *preprocessor) condition(start *token) bool {
	result, all := false, true
	for {
		all = p.comparison(start) && all
		t := p.expanded()
		switch {
		case t.op("&&"):
			continue
		case t.op("||"):
			result, all = result || all, true
			continue
		}
		if t != nil {
			p.queue = append([]*token{t}, p.queue...)
		}
		return result || all
	}
}

const badCondition = `expected 'arch', 'kernel_v', 'kernel_vr', 'systemtap_v',
             'runtime', 'systemtap_privilege', 'CONFIG_...', or
             comparison between strings or integers`

func (p *preprocessor) comparison(start *token) bool {
	l, op, r := p.expanded(), p.expanded(), p.expanded()
	if l == nil || op == nil || r == nil {
		panic(problem("incomplete condition after '%('", start))
	}
	isText := func() {
		if r.kind != text {
			panic(problem("expected string literal", r))
		}
	}
	equality := func() {
		if !op.op("==") && !op.op("!=") {
			panic(problem("expected '==' or '!='", op))
		}
	}
	pattern := func(value string) bool {
		isText()
		equality()
		ok, _ := path.Match(r.text, value)
		return ok == op.op("==")
	}
	switch {
	case l.kind == identifier && (l.text == "kernel_v" || l.text == "kernel_vr"):
		isText()
		have := p.o.Release
		if l.text == "kernel_v" {
			have, _, _ = strings.Cut(have, "-")
		}
		if strings.ContainsAny(r.text, "*?[") {
			return pattern(have)
		}
		return p.ordered(op, compareVersions(have, r.text))
	case l.is(identifier, "systemtap_v"):
		isText()
		return p.ordered(op, compareVersions(Version, r.text))
	case l.is(identifier, "systemtap_privilege"):
		return pattern("stapdev")
	case l.is(identifier, "guru_mode"):
		equality()
		if r.kind != number {
			panic(problem("expected number", r))
		}
		return p.ordered(op, int(truth(p.o.Guru)-parseNumber(r)))
	case l.is(identifier, "arch"):
		return pattern("x86_64")
	case l.is(identifier, "runtime"):
		return pattern("kernel")
	case l.kind == identifier && strings.HasPrefix(l.text, "CONFIG_"):
		return p.configured(l, op, r, pattern)
	case l.kind == text:
		switch {
		case r.kind == number && op.kind == operator:
			panic(problem("expected string literal as right value", r))
		case r.kind != text:
			panic(problem(badCondition, l))
		}
		return p.ordered(op, strings.Compare(l.text, r.text))
	case l.kind == number && isComparison(op):
		switch {
		case r.kind == text:
			panic(problem("expected number literal as right value", r))
		case r.kind != number:
			panic(problem(badCondition, l))
		}
		return p.ordered(op, cmp.Compare(parseNumber(l), parseNumber(r)))
	}
	panic(problem(badCondition, l))
}

// configured compares an option of the kernel's configuration with a pattern, a number or another option.
func (p *preprocessor) configured(l, op, r *token, pattern func(value string) bool) bool {
	option := func(name string) string {
		if p.o.Config == nil {
			return ""
		}
		return p.o.Config(name)
	}
	value := option(l.text)
	n, isNumber := optionNumber(value)
	switch {
	case r.kind == text:
		return pattern(value)
	case r.kind == number:
		if !isNumber {
			panic(problem("Config option value not a number", l))
		}
		return p.ordered(op, cmp.Compare(n, parseNumber(r)))
	case r.kind == identifier && strings.HasPrefix(r.text, "CONFIG_"):
		other := option(r.text)
		if m, ok := optionNumber(other); ok && isNumber {
			return p.ordered(op, cmp.Compare(n, m))
		}
		return p.ordered(op, strings.Compare(value, other))
	}
	panic(problem("expected string, number literal or other CONFIG_... as right side operand", r))
}

// optionNumber is the number that an option has as its value; one that is not set is 0.
func optionNumber(value string) (int64, bool) {
	if value == "" {
		return 0, true
	}
	n, err := strconv.ParseInt(value, 0, 64)
	return n, err == nil && !strings.Contains(value, "_")
}

func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func isComparison(op *token) bool {
	switch op.text {
	case "==", "!=", "<", ">", "<=", ">=":
		return op.kind == operator
	}
	return false
}

func (p *preprocessor) ordered(op *token, c int) bool {
	if !isComparison(op) {
		panic(problem("expected comparison operator", op))
	}
	switch op.text {
	case "==":
		return c == 0
	case "!=":
		return c != 0
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// compareVersions compares as strverscmp does: numbers in the text as numbers.
func compareVersions(a, b string) int {
	for a != "" && b != "" {
		if isDigit(a[0]) && isDigit(b[0]) {
			x, y := digits(a), digits(b)
			a, b = a[len(x):], b[len(y):]
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if len(x) != len(y) {
				return len(x) - len(y)
			}
			if c := strings.Compare(x, y); c != 0 {
				return c
			}
			continue
		}
		if a[0] != b[0] {
			return int(a[0]) - int(b[0])
		}
		a, b = a[1:], b[1:]
	}
	return len(a) - len(b)
}

func digits(s string) string {
	n := 0
	for n < len(s) && isDigit(s[n]) {
		n++
	}
	return s[:n]
}
