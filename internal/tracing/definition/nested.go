package definition

import (
	"strings"

	"kprobelab/errno"
)

// What 7.3 can put around a fetch expression: casts of a pointer to a structure,
// and the calls for per-CPU variables. Each, as each dereference, is a level.

// maxNested is the number of levels that an expression may have
// (TRACEPROBE_MAX_NESTED_LEVEL).
const maxNested = 8

const (
	thisCPUPtr  = "this_cpu_ptr("
	thisCPURead = "this_cpu_read("
)

// nests reports whether an expression has another one in it.
func nests(text string) bool {
	return strings.IndexByte("+-(", first(text)) >= 0 && text != "" || perCPU(text)
}

func perCPU(text string) bool {
	return strings.HasPrefix(text, thisCPUPtr) || strings.HasPrefix(text, thisCPURead)
}

// nested reads an expression with another one in it (parse_probe_arg_nested).
func (p *parser) nested(text string, offs int) error {
	if p.depth >= maxNested {
		return &fault{TooManyNested, errno.E2BIG, offs}
	}
	p.depth++
	defer func() { p.depth-- }()
	switch first(text) {
	case '+', '-':
		return p.deref(text, offs)
	case '(':
		return p.typecast(text, offs)
	}
	return p.thisCPU(text, offs)
}

// current reads $current, the address of the task's task_struct, and the fields
// after it.
func (p *parser) current(text string, offs int) error {
	name, field, step, err := splitField(text, offs)
	switch {
	case text == "$current":
		*p.code.op() = Op{Code: OpCurrent}
		return nil
	case !p.c.BTFArgs || !strings.HasPrefix(text, "$current-"):
		return bad(offs, BadVar)
	case err != nil:
		return err
	case name != "$current" || step != stepArrow:
		return bad(offs, BadVar)
	}
	*p.code.op() = Op{Code: OpCurrent}
	task, ok := p.k.Struct("task_struct")
	if !ok {
		return &fault{NoBTFEntry, errno.ENOENT, offs}
	}
	return p.members(field, task, 0, offs+len(text)-len(field))
}

// thisCPU reads this_cpu_ptr(variable), the address of this CPU's copy, and
// this_cpu_read(variable), the value (parse_this_cpu). The last bracket closes
// the call; text after it is ignored.
func (p *parser) thisCPU(text string, offs int) error {
	inner, read := strings.CutPrefix(text, thisCPURead)
	if !read {
		inner = strings.TrimPrefix(text, thisCPUPtr)
	}
	offs += len(text) - len(inner)
	closing := strings.LastIndexByte(inner, ')')
	if closing < 0 {
		return bad(offs+len(inner), DerefOpenBrace)
	}
	inner = inner[:closing]
	p.reached = offs
	if err := p.fetch(inner, offs); err != nil {
		return err
	}
	p.reached = offs
	if c := p.code.op().Code; c == OpComm || c == OpData {
		return bad(offs, CommCantDeref)
	}
	// For @SYMBOL the call takes the address, not the memory there.
	if first(inner) != '@' && !p.code.next() {
		return bad(offs, TooManyOps)
	}
	*p.code.op() = Op{Code: OpPerCPU}
	p.last = nil
	if read {
		if !p.code.next() {
			return bad(offs, TooManyOps)
		}
		*p.code.op() = Op{Code: OpDeref}
	}
	return nil
}

// cast is a typecast, taken apart.
type cast struct {
	// typ is the text between the brackets: a structure's name, and after a
	// comma the member of it that the value points to.
	typ string
	// inner is the value, innerAt its place.
	inner   string
	innerAt int
	// field is the text after the arrow, fieldAt its place.
	field   string
	fieldAt int
}

// typecast reads (type)value->field and (type,member)value->field
// (handle_typecast, and STATE_TYPECAST of unwind_parse_states).
func (p *parser) typecast(text string, offs int) error {
	if !p.c.BTFArgs || !p.entry && !p.exit {
		return &fault{NosupBTFArg, errno.EOPNOTSUPP, offs}
	}
	c, err := splitCast(text, offs)
	if err != nil {
		return err
	}
	p.reached = c.innerAt
	if err := p.fetch(c.inner, c.innerAt); err != nil {
		return err
	}
	to, back, err := p.castType(c.typ, offs+1)
	if err != nil {
		return err
	}
	return p.members(c.field, to, back, c.fieldAt)
}

// castType finds the structure, and how far into it the value points.
func (p *parser) castType(text string, offs int) (to CType, back int, err error) {
	name, member, has := strings.Cut(text, ",")
	to, ok := p.k.Struct(name)
	switch {
	case !ok:
		return nil, 0, bad(offs, NoPtrStrct)
	case !has:
		return to, 0, nil
	}
	m, r, after, err := dotted(to, member, offs+len(name)+1)
	switch {
	case err != nil:
		return nil, 0, err
	case m.Offset%8 != 0:
		return nil, 0, bad(after, TypecastNotAligned)
	case r.step != stepNone:
		return nil, 0, bad(after-2, TypecastBadArrow)
	}
	return to, m.Offset / 8, nil
}

// splitCast takes a typecast apart. The value is in brackets, or a dereference,
// or a call, or a name; an arrow has to follow it.
func splitCast(text string, offs int) (c cast, err error) {
	closing := strings.IndexByte(text, ')')
	if closing < 0 {
		return c, bad(offs+len(text), DerefOpenBrace)
	}
	c.typ = text[1:closing]
	value := text[closing+1:]
	c.innerAt = offs + closing + 1
	end, skip, err := valueEnd(value, c.innerAt)
	if err != nil {
		return c, err
	}
	c.inner = value[:end]
	if skip > 0 {
		c.inner = value[1:end]
		c.innerAt++
	}
	c.field = value[end+skip+len("->"):]
	c.fieldAt = offs + len(text) - len(c.field)
	return c, nil
}

// valueEnd returns the index of the first byte after the value of a cast. If the
// value is in brackets, end is the index of the closing bracket and skip is 1.
func valueEnd(value string, offs int) (end, skip int, err error) {
	switch {
	case first(value) == '(':
		end, skip = matching(value, 0), 1
		if end < 0 {
			return 0, 0, bad(offs, DerefOpenBrace)
		}
	case nests(value):
		open := strings.IndexByte(value[1:], '(')
		if open < 0 {
			return 0, 0, bad(offs, DerefNeedBrace)
		}
		if end = matching(value, open+1); end < 0 {
			return 0, 0, bad(offs+len(value), DerefOpenBrace)
		}
		end++
	default:
		if i := strings.IndexAny(value, "+-"); first(value) == '@' && i >= 0 && isDigit(first(value[i+1:])) {
			return 0, 0, bad(offs, TypecastSymOffset)
		}
		end = strings.IndexByte(value, '-')
		if end < 0 || !strings.HasPrefix(value[end:], "->") {
			return 0, 0, bad(offs+len(value), TypecastReqField)
		}
		return end, 0, nil
	}
	if !strings.HasPrefix(value[end+skip:], "->") {
		return 0, 0, bad(offs+end+skip, TypecastReqField)
	}
	return end, skip, nil
}

// matching returns the index of the bracket that closes the bracket at open, -1 for
// none.
func matching(s string, open int) int {
	depth := 0
	for i := open; i < len(s); i++ {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
