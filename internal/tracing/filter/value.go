package filter

import (
	"strconv"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/tracing/event"
)

// kind is the kind of value that a predicate compares.
type kind int

const (
	// kindNumber is a number in the record.
	kindNumber kind = iota
	// kindText is a __data_loc to text.
	kindText
	kindCPU
	kindComm
	// kindOpaque is a field that no operator works on: it never matches.
	kindOpaque
	// kindStack is the stack of the moment, on which no operator works either.
	kindStack
)

// operand is the left side of a predicate.
type operand struct {
	kind          kind
	offset, width int
	signed        bool
}

// text reports whether it is compared with strings.
func (o *operand) text() bool { return o.kind == kindText || o.kind == kindComm }

// recordField is a record's field as an operand. By its declared type
// (filter_assign_type), an array of __data_locs counts as its first one.
func recordField(f *event.Field) operand {
	o := operand{kind: kindNumber, offset: f.Offset, width: f.Size, signed: f.Signed}
	switch {
	case f.Kind == event.KindString || f.Kind == event.KindStringArray:
		o.kind, o.width = kindText, 4
	case f.Size != 1 && f.Size != 2 && f.Size != 4 && f.Size != 8:
		o.kind = kindOpaque
	}
	return o
}

// maxString is the longest quoted value and its NUL (MAX_FILTER_STR_VAL).
const maxString = 256

func (p *parser) stringValue(o operand, op string) (node, error) {
	if op != "==" && op != "!=" && op != "~" {
		return nil, p.fail(errno.EINVAL, msgIllegalFieldOp, p.i+1)
	}
	if !o.text() {
		return nil, p.fail(errno.EINVAL, msgExpectDigit, p.i+1)
	}
	quote := p.text[p.i]
	p.i++
	n := strings.IndexByte(p.text[p.i:], quote)
	if n < 0 {
		return nil, p.fail(errno.EINVAL, msgMissingQuote, len(p.text)+1)
	}
	value := p.text[p.i : p.i+n]
	p.i += n
	if n >= maxString {
		return nil, p.fail(errno.EINVAL, msgOperandTooLong, p.i+1)
	}
	p.i++
	m := matcher{pattern: value, how: matchFull}
	if op == "~" {
		m = parseGlob(value)
	}
	return &textPredicate{operand: o, matcher: m, not: op == "!=" || m.not}, nil
}

// maxNumber is the longest number and its NUL.
const maxNumber = 24

func (p *parser) numberValue(o operand, op string) (node, error) {
	if o.text() {
		return nil, p.fail(errno.EINVAL, msgExpectString, p.i+1)
	}
	if op == "~" {
		return nil, p.fail(errno.EINVAL, msgIllegalFieldOp, p.i+1)
	}
	start := p.i
	if p.at(p.i) == '-' {
		p.i++
	}
	for isAlnum(p.at(p.i)) {
		p.i++
	}
	text := p.text[start:p.i]
	if len(text) >= maxNumber {
		return nil, p.fail(errno.EINVAL, msgOperandTooLong, p.i+1)
	}
	v, ok := number(text, o.signed)
	if !ok {
		return nil, p.fail(errno.EINVAL, msgIllegalInt, start+1)
	}
	return newNumberPredicate(o, op, v), nil
}

// number reads one as kstrtoll or kstrtoull with base 0 do.
func number(text string, signed bool) (uint64, bool) {
	digits, base := text, 10
	negative := signed && strings.HasPrefix(digits, "-")
	if negative {
		digits = digits[1:]
	}
	switch {
	case len(digits) > 2 && (digits[:2] == "0x" || digits[:2] == "0X"):
		digits, base = digits[2:], 16
	case len(digits) > 1 && digits[0] == '0':
		base = 8
	}
	v, err := strconv.ParseUint(digits, base, 64)
	switch {
	case err != nil:
		return 0, false
	case negative:
		return -v, v <= 1<<63
	}
	return v, !signed || v < 1<<63
}
