package definition

import (
	"fmt"
	"strings"

	"kprobelab/errno"
)

// typed is the BTF type of the value that was fetched last. For a bitfield, bits is
// its width and off its first bit in the fetched bytes.
type typed struct {
	c         CType
	off, bits int
}

// parameter fetches a parameter by its name, or the return value. Fields may
// follow: name->field.field->field (parse_btf_arg).
func (p *parser) parameter(text string, offs int) error {
	name, field, step, err := splitField(text, offs)
	if err != nil {
		return err
	}
	after := offs
	if step != stepNone {
		after += len(text) - len(field)
	}
	p.reached = after
	if step == stepDot {
		return &fault{NosupDatArg, errno.EOPNOTSUPP, after}
	}
	c, err := p.loadTyped(name, step != stepNone, offs, after)
	switch {
	case err != nil:
		return err
	case step != stepNone:
		return p.fields(field, c, after)
	case c != nil:
		p.last = &typed{c: c}
	}
	return nil
}

// loadTyped loads the parameter or the return value that the name stands for. The
// type is nil if BTF does not have it; only $retval without fields may have none.
func (p *parser) loadTyped(name string, fields bool, offs, after int) (CType, error) {
	if name == "$retval" {
		*p.code.op() = Op{Code: OpRetval}
		p.asked = true
		switch {
		case p.prototyped() && p.proto.Ret == nil:
			return nil, &fault{NoRetval, errno.ENOENT, offs}
		case p.prototyped():
			return p.proto.Ret, nil
		case fields:
			return nil, &fault{NoBTFEntry, errno.ENOENT, after}
		}
		return nil, nil
	}
	if !p.prototyped() || len(p.proto.Params) == 0 && !p.asked {
		return nil, &fault{NoBTFEntry, errno.ENOENT, offs}
	}
	for i, param := range p.proto.Params {
		if param.Name == name {
			p.loadArgument(i)
			return param.Type, nil
		}
	}
	return nil, &fault{NoBTFArg, errno.ENOENT, offs}
}

// step is the mark between a name and its field: none, a dot or an arrow.
type step int

const (
	stepNone step = iota
	stepDot
	stepArrow
)

// splitField splits a name from the fields that follow it. After a dot or an
// arrow there may be nothing.
func splitField(text string, offs int) (name, field string, s step, err error) {
	i := strings.IndexAny(text, ".-")
	switch {
	case i < 0:
		return text, "", stepNone, nil
	case text[i] == '.':
		return text[:i], text[i+1:], stepDot, nil
	case !strings.HasPrefix(text[i:], "->"):
		return "", "", stepNone, bad(offs+i, BadHyphen)
	}
	return text[:i], text[i+2:], stepArrow, nil
}

// fields follows fields from a pointer: every arrow is a dereference, dots add
// offsets to it (parse_btf_field).
func (p *parser) fields(text string, c CType, offs int) error {
	target, ok := c.Target()
	if !ok {
		return bad(offs, NoPtrStrct)
	}
	return p.members(text, target, 0, offs)
}

// members follows fields from the address of a structure, less back bytes.
func (p *parser) members(text string, c CType, back, offs int) error {
	for {
		m, next, after, err := dotted(c, text, offs)
		p.reached = after
		if err != nil {
			return err
		}
		offs = after
		if !p.code.next() {
			return bad(offs, TooManyOps)
		}
		*p.code.op() = Op{Code: OpDeref, Offset: int64(m.Offset/8 - back)}
		p.last = &typed{c: m.Type, off: m.Offset % 8, bits: m.Bits}
		if next.step == stepNone {
			return nil
		}
		target, ok := m.Type.Target()
		if !ok {
			return bad(offs, NoPtrStrct)
		}
		c, text, back = target, next.field, 0
	}
}

// dotted follows name.name.name and returns the last member, with its offset from
// the structure's start. r is the text that follows the member, after is its place.
func dotted(c CType, text string, offs int) (m Member, r rest, after int, err error) {
	place := 0
	for {
		m, r, after, err = nextMember(c, text, offs)
		if err != nil {
			return m, r, offs, err
		}
		place += m.Offset
		m.Offset, offs = place, after
		if r.step != stepDot {
			return m, r, after, nil
		}
		c, text = m.Type, r.field
	}
}

// rest is the text of the fields after a member, and the mark before them.
type rest struct {
	field string
	step  step
}

// nextMember finds the member that a text begins with; after is the place of the
// text after it.
func nextMember(c CType, text string, offs int) (m Member, r rest, after int, err error) {
	name, field, how, err := splitField(text, offs)
	if err != nil {
		return m, r, 0, err
	}
	after = offs
	if how != stepNone {
		after += len(text) - len(field)
	}
	if !c.Composite() {
		return m, r, 0, bad(offs, BadBTFTid)
	}
	m, ok := c.Member(name)
	if !ok {
		return m, r, 0, &fault{NoBTFField, errno.ENOENT, offs}
	}
	return m, rest{field, how}, after, nil
}

// infer returns the argument type for the fetched value: an integer's by size and sign, x64
// for a pointer. A bit field has the type of its integer. Nil leaves the default.
func (p *parser) infer() *Type {
	name := ""
	if _, pointer := p.last.c.Target(); pointer {
		name = "x64"
	} else if size, signed, ok := p.last.c.Int(); ok {
		name = map[bool]string{true: "s", false: "u"}[signed] + fmt.Sprint(8*size)
	}
	return findType(name, p.c.Types)
}

// asText prepares a typed value to be fetched as text: an array of characters
// is there, a pointer to them is followed (check_prepare_btf_string_fetch).
func (p *parser) asText(offs int) error {
	if elem, ok := p.last.c.Elem(); ok && elem.Char() {
		return nil
	}
	target, ok := p.last.c.Target()
	if size, _, number := p.last.c.Int(); number {
		// The kernel takes anything for a pointer here, and a number's size for
		// the ID of the type that it points to: 8 is char in Debian's 6.12.
		target, ok = p.k.TypeByID(size)
	}
	if !ok || !target.Char() {
		return bad(offs, BadType4Str)
	}
	if !p.code.next() {
		return bad(offs, TooManyOps)
	}
	*p.code.op() = Op{Code: OpDeref}
	return nil
}

// typedBitfield takes a bitfield out of the stored integer of size bytes.
func (p *parser) typedBitfield(offs, size int) error {
	if p.last == nil || p.last.bits == 0 {
		return nil
	}
	if !p.code.spare() {
		return bad(offs, TooManyOps)
	}
	*p.code.op() = Op{
		Code: OpBitfield, Size: size, Left: uint8(8*size - p.last.bits - p.last.off), Right: uint8(8*size - p.last.bits),
	}
	return nil
}

// expandNames puts the name of a dentry (:%pd) or of a file (:%pD) in the place
// of the pointer (traceprobe_expand_dentry_args).
func (x *context) expandNames(k Kernel, args []string) []string {
	var out []string
	for _, a := range args {
		name, expr, named := strings.Cut(a, "=")
		if !named {
			name, expr = "", a
		} else {
			name += "="
		}
		dentry, ok := strings.CutSuffix(expr, ":%pd")
		if !ok {
			var file string
			file, ok = strings.CutSuffix(expr, ":%pD")
			dentry = fmt.Sprintf("+%#x(%s)", offsetOf(k, "file", "f_path", "dentry"), file)
		}
		if !ok || dentry == "" {
			out = append(out, a)
			continue
		}
		out = append(out, fmt.Sprintf("%s+0x0(+%#x(%s)):string", name, offsetOf(k, "dentry", "d_name", "name"), dentry))
	}
	return out
}

// offsetOf returns the offset in bytes of a member in the structure name. members is
// the path to it, one name a level. The result is 0 if BTF has no such member.
func offsetOf(k Kernel, name string, members ...string) int {
	c, ok := k.Struct(name)
	off := 0
	for _, m := range members {
		var found Member
		if ok {
			found, ok = c.Member(m)
		}
		if !ok {
			return 0
		}
		off, c = off+found.Offset/8, found.Type
	}
	return off
}
