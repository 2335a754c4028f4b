package filter

import (
	"kprobelab/internal/tracing/event"
	"kprobelab/x86"
)

// Current is the CPU and the task that write a record; the record does not hold them.
type Current struct {
	CPU int
	// Comm is the task's name, 15 bytes at most.
	Comm string
}

// Filter is a compiled filter. It may be used from any goroutine.
type Filter struct {
	text string
	node node
	// need is the length of the shortest record that has all its fields.
	need int
}

// Compile compiles a filter for the records of an event. An error is an
// *Error. The text is taken as it is: the file takes white space off its end
// (not its front), and lets "0" clear the filter.
func Compile(text string, fields *event.Format) (*Filter, error) {
	p := &parser{text: text, fields: fields, rules: fields.Filters}
	if p.rules == nil {
		p.rules = &event.Filters{}
	}
	n, err := p.parse()
	if err != nil {
		return nil, err
	}
	return &Filter{text: text, node: n, need: n.need()}, nil
}

// String is the filter's text as it was written.
func (f *Filter) String() string { return f.text }

// Match reports whether the record passes. It allocates nothing. A nil filter passes everything; a
// record that is too short for the fields does not pass.
func (f *Filter) Match(rec []byte, c Current) bool {
	return f == nil || len(rec) >= f.need && f.node.match(rec, c)
}

// node is a part of a filter.
type node interface {
	match(rec []byte, c Current) bool
	need() int
}

type anyOf []node

func (l anyOf) match(rec []byte, c Current) bool {
	for _, n := range l {
		if n.match(rec, c) {
			return true
		}
	}
	return false
}

func (l anyOf) need() int { return needs(l) }

type allOf []node

func (l allOf) match(rec []byte, c Current) bool {
	for _, n := range l {
		if !n.match(rec, c) {
			return false
		}
	}
	return true
}

func (l allOf) need() int { return needs(l) }

// only is the list's only member, nil for an empty list, and else the list.
func only[L interface {
	node
	~[]node
}](l L) node {
	switch len(l) {
	case 0:
		return nil
	case 1:
		return l[0]
	}
	return l
}

func needs(list []node) int {
	n := 0
	for _, m := range list {
		n = max(n, m.need())
	}
	return n
}

type not struct{ node }

func (n not) match(rec []byte, c Current) bool { return !n.node.match(rec, c) }

// numberPredicate compares a number with a value that was cut to its width.
type numberPredicate struct {
	operand
	op    string
	value uint64
}

func newNumberPredicate(o operand, op string, v uint64) node {
	switch o.kind {
	case kindOpaque, kindStack:
		return never{}
	case kindCPU:
		v = uint64(int64(int32(v)))
	default:
		var b [8]byte
		for i := range b {
			b[i] = byte(v >> (8 * i))
		}
		v = event.Number(b[:], o.width, o.signed)
	}
	return &numberPredicate{o, op, v}
}

func (p *numberPredicate) need() int {
	if p.kind == kindCPU {
		return 0
	}
	return p.offset + p.width
}

func (p *numberPredicate) match(rec []byte, c Current) bool {
	var v uint64
	if p.kind == kindCPU {
		if v = uint64(int64(c.CPU)); p.op == "&" {
			return false // the kernel has no such comparison
		}
	} else {
		v = event.Number(rec[p.offset:], p.width, p.signed)
	}
	less, equal := v < p.value, v == p.value
	if p.signed {
		less = int64(v) < int64(p.value)
	}
	switch p.op {
	case "==":
		return equal
	case "!=":
		return !equal
	case "<":
		return less
	case "<=":
		return less || equal
	case ">":
		return !less && !equal
	case ">=":
		return !less
	}
	return v&p.value != 0
}

// never is a predicate on a field that no comparison fits.
type never struct{}

func (never) match([]byte, Current) bool { return false }
func (never) need() int                  { return 0 }

// textPredicate compares a text.
type textPredicate struct {
	operand
	matcher
	not bool
}

func (p *textPredicate) need() int {
	if p.kind == kindComm {
		return 0
	}
	return p.offset + p.width
}

func (p *textPredicate) match(rec []byte, c Current) bool {
	if p.kind == kindComm {
		var comm [x86.TaskCommLen]byte
		copy(comm[:x86.TaskCommLen-1], c.Comm)
		return p.matcher.match(comm[:], x86.TaskCommLen) != p.not
	}
	loc := event.Number(rec[p.offset:], 4, false)
	at, size := int(loc&0xffff), int(loc>>16)
	if at > len(rec) {
		return false
	}
	return p.matcher.match(rec[at:], size) != p.not
}
