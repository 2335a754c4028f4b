package filter

import (
	"kprobelab/errno"
	"kprobelab/internal/tracing/event"
	"kprobelab/internal/tracing/word"
)

// functionValue reads the value of FIELD.function: a symbol, up to the next white space, or an
// address in it in digits (6.3 and later). The field is the size of a pointer, and the operator ==
// or !=.
func (p *parser) functionValue(o operand, op string) (node, error) {
	switch {
	case o.kind != kindNumber || o.width != 8:
		return nil, p.fail(errno.EINVAL, msgIllegalFieldOp, p.i+1)
	case op != "==" && op != "!=":
		return nil, p.fail(errno.EINVAL, msgInvalidOp, p.i+1)
	}
	at, err := p.address()
	if err != nil {
		return nil, err
	}
	var from, to uint64
	ok := p.rules.Bounds != nil
	if ok {
		from, to, ok = p.rules.Bounds(at)
	}
	if !ok {
		return nil, p.fail(errno.EINVAL, msgNoFunction, p.i+1)
	}
	return &functionPredicate{o, from, to, op == "!="}, nil
}

// address reads digits, or a symbol and finds it.
func (p *parser) address() (uint64, error) {
	start := p.i
	if isDigit(p.at(p.i)) {
		for isAlnum(p.at(p.i)) {
			p.i++
		}
		text := p.text[start:p.i]
		if len(text) >= maxNumber {
			return 0, p.fail(errno.EINVAL, msgOperandTooLong, p.i+1)
		}
		v, ok := number(text, false)
		if !ok {
			return 0, p.fail(errno.EINVAL, msgInvalidValue, p.i+1)
		}
		return v, nil
	}
	p.i = start + word.Index(p.text[start:])
	if p.rules.Lookup != nil {
		if at, ok := p.rules.Lookup(p.text[start:p.i]); ok {
			return at, nil
		}
	}
	return 0, p.fail(errno.EINVAL, msgNoFunction, p.i+1)
}

// functionPredicate tests whether an address lies in a function.
type functionPredicate struct {
	operand
	from, to uint64
	not      bool
}

func (p *functionPredicate) need() int { return p.offset + p.width }

func (p *functionPredicate) match(rec []byte, _ Current) bool {
	v := event.Number(rec[p.offset:], p.width, false)
	return (p.from <= v && v < p.to) != p.not
}
