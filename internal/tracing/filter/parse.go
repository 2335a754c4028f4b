package filter

import (
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/event"
	"kprobelab/internal/tracing/word"
)

// parser goes through a text once, left to right.
type parser struct {
	text   string
	i      int
	fields *event.Format
	rules  *event.Filters
	// preds is the number of predicates read so far, depth the number of open parentheses.
	preds, depth int
}

func (p *parser) fail(e errno.Errno, msg string, pos int) error {
	return &Error{Text: p.text, Msg: msg, Pos: pos, Errno: e}
}

// at is the byte at i; 0 past the end, as the kernel's text ends with a NUL.
func (p *parser) at(i int) byte {
	if i < len(p.text) {
		return p.text[i]
	}
	return 0
}

func (p *parser) spaces() {
	for word.IsSpace(p.at(p.i)) {
		p.i++
	}
}

// parse reads the whole text (predicate_parse).
func (p *parser) parse() (node, error) {
	terms, err := p.balance()
	if err != nil {
		return nil, err
	}
	if terms == 0 {
		return nil, p.fail(errno.EINVAL, "", 0)
	}
	n, err := p.or()
	switch {
	case err != nil:
		return nil, err
	case p.at(p.i) == ')':
		return nil, p.fail(errno.EPERM, msgTooManyClose, p.i+1)
	case n == nil:
		return nil, p.fail(errno.EINVAL, msgNoFilter, len(p.text))
	}
	return n, nil
}

// or reads terms up to a closing parenthesis or the end.
func (p *parser) or() (node, error) {
	var list anyOf
	for {
		n, trailing, err := p.and()
		if err != nil {
			return nil, err
		}
		if trailing && len(list) > 0 {
			return nil, p.fail(errno.EINVAL, "", 0) // "a || b &&"
		}
		if n != nil {
			list = append(list, n)
		}
		if n == nil || p.at(p.i) != '|' {
			return only(list), nil
		}
		p.i += 2
	}
}

// and reads factors. trailing: an "&&" had nothing after it. A nil node: there
// was nothing at all.
func (p *parser) and() (n node, trailing bool, err error) {
	var list allOf
	for {
		f, err := p.factor()
		if err != nil {
			return nil, false, err
		}
		if f == nil {
			return only(list), len(list) > 0, nil
		}
		list = append(list, f)
		if err := p.operator(); err != nil {
			return nil, false, err
		}
		if p.at(p.i) != '&' {
			return only(list), false, nil
		}
		p.i += 2
	}
}

// operator looks for an operator after a factor, and does not pass it.
func (p *parser) operator() error {
	p.spaces()
	switch c := p.at(p.i); {
	case p.i >= len(p.text) || c == ')':
	case (c == '&' || c == '|') && p.at(p.i+1) == c:
	default:
		return p.fail(errno.EPERM, msgTooManyPreds, p.i)
	}
	return nil
}

// factor reads one; nil at the end of the text.
func (p *parser) factor() (node, error) {
	invert := false
	for {
		p.spaces()
		switch c := p.at(p.i); {
		case p.i >= len(p.text):
			switch {
			case p.depth > 0:
				return nil, p.fail(errno.EPERM, msgTooManyOpen, len(p.text))
			case p.preds > 0 && p.rules.RefuseOpenEnd:
				return nil, p.fail(errno.EINVAL, msgMeaningless, len(p.text))
			}
			return nil, nil
		case c == '!' && p.at(p.i+1) != '=' && p.at(p.i+1) != '~':
			invert = !invert
			p.i++
			continue
		}
		break
	}
	n, err := p.group()
	if err == nil && invert {
		n = not{n}
	}
	return n, err
}

func (p *parser) group() (node, error) {
	if p.at(p.i) != '(' {
		p.preds++
		return p.predicate()
	}
	p.i++
	p.depth++
	n, err := p.or()
	if err != nil {
		return nil, err
	}
	if p.at(p.i) != ')' || n == nil {
		return nil, p.fail(errno.EPERM, msgTooManyOpen, len(p.text))
	}
	p.i++
	p.depth--
	return n, nil
}

// operators of a predicate. An operator comes before its own prefixes.
var operators = []string{"~", "!=", "==", "<=", "<", ">=", ">", "&"}

// predicate reads "field op value" (parse_pred). Positions in its errors are
// one too far, as the kernel's are.
func (p *parser) predicate() (node, error) {
	start := p.i
	for isAlnum(p.at(p.i)) || p.at(p.i) == '_' {
		p.i++
	}
	if p.i == start {
		return nil, p.fail(errno.EPERM, "", 0)
	}
	field, ok := p.field(p.text[start:p.i])
	if !ok {
		return nil, p.fail(errno.EINVAL, msgFieldNotFound, p.i+1)
	}
	if p.rules.NoTasks && (field.kind == kindComm || p.text[start:p.i] == "common_pid") {
		return nil, p.fail(errno.EINVAL, msgNoTasks, p.i+1)
	}
	p.skip(".ustring")
	function := p.rules.Functions && p.skip(".function")
	p.spaces()
	op := ""
	for _, o := range operators {
		if strings.HasPrefix(p.text[p.i:], o) {
			op = o
			break
		}
	}
	if op == "" {
		return nil, p.fail(errno.EINVAL, msgInvalidOp, p.i+1)
	}
	p.i += len(op)
	p.spaces()
	switch c := p.at(p.i); {
	case function:
		return p.functionValue(field, op)
	case p.rules.CPUSets && strings.HasPrefix(p.text[p.i:], cpusWord):
		return p.cpusValue(field, op)
	case c == '\'' || c == '"':
		return p.stringValue(field, op)
	case isDigit(c) || c == '-':
		return p.numberValue(field, op)
	}
	return nil, p.fail(errno.EINVAL, msgInvalidValue, p.i+1)
}

// skip passes a word, if it is there.
func (p *parser) skip(word string) bool {
	there := strings.HasPrefix(p.text[p.i:], word)
	if there {
		p.i += len(word)
	}
	return there
}

// field finds a field: an own field of the event, then a field of the moment, then a common field.
func (p *parser) field(name string) (operand, bool) {
	for i := range p.fields.Fields {
		if f := &p.fields.Fields[i]; f.Name == name {
			return recordField(f), true
		}
	}
	switch name {
	case "CPU", "cpu", "common_cpu":
		return operand{kind: kindCPU, width: 4, signed: true}, true
	case "COMM", "comm":
		return operand{kind: kindComm}, true
	case "stacktrace", "STACKTRACE":
		if p.rules.Stack {
			return operand{kind: kindStack}, true
		}
	}
	for i := range p.fields.Common {
		if f := &p.fields.Common[i]; f.Name == name {
			return recordField(f), true
		}
	}
	return operand{}, false
}
