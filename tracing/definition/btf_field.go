package definition

import (
	"fmt"
	"strings"

	"kprobelab/errno"
)

// typed is what BTF knows of the value that was fetched last: its type, and
// where it is a bitfield, its place in the bytes that were fetched.
type typed struct {
	c         CType
	off, bits int
}

// parameter fetches a parameter by its name, or the return value, or what
// their fields lead to: name->field.field->field (parse_btf_arg).
func (p *parser) parameter(text string, offs int) error {
	name, field, arrow, err := splitField(text, offs)
	if err != nil {
		return err
	}
	behind := offs + len(text) - len(field)
	if field != "" && !arrow {
		return &fault{NosupDatArg, errno.EOPNOTSUPP, behind}
	}
	c, err := p.loadTyped(name, field != "", offs, behind)
	switch {
	case err != nil:
		return err
	case field != "":
		return p.fields(field, c, behind)
	case c != nil:
		p.last = &typed{c: c}
	}
	return nil
}

// loadTyped loads what the name stands for. The type is nil where it is not
// known, which only $retval without fields may be.
func (p *parser) loadTyped(name string, fields bool, offs, behind int) (CType, error) {
	if name == "$retval" {
		*p.code.op() = Op{Code: OpRetval}
		switch {
		case p.hasProto && p.proto.Ret == nil:
			return nil, &fault{NoRetval, errno.ENOENT, offs}
		case p.hasProto:
			return p.proto.Ret, nil
		case fields:
			return nil, &fault{NoBTFEntry, errno.ENOENT, behind}
		}
		return nil, nil
	}
	switch {
	case !p.entry && !p.exit:
		return nil, bad(offs, NosupBTFArg)
	case !p.hasProto || len(p.proto.Params) == 0:
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

// splitField splits a name from the fields behind it; arrow is false for a
// dot.
func splitField(text string, offs int) (name, field string, arrow bool, err error) {
	i := strings.IndexAny(text, ".-")
	switch {
	case i < 0:
		return text, "", false, nil
	case text[i] == '.':
		return text[:i], text[i+1:], false, nil
	case !strings.HasPrefix(text[i:], "->"):
		return "", "", false, bad(offs+i, BadHyphen)
	}
	return text[:i], text[i+2:], true, nil
}

// fields follows fields from a pointer: every arrow is a dereference, dots add
// offsets to it (parse_btf_field).
func (p *parser) fields(text string, c CType, offs int) error {
	for text != "" {
		target, ok := c.Target()
		if !ok {
			return bad(offs, NoPtrStrct)
		}
		c = target
		place, bits := 0, 0
		for arrow := false; text != "" && !arrow; {
			var name, next string
			var err error
			if name, next, arrow, err = splitField(text, offs); err != nil {
				return err
			}
			m, ok := c.Member(name)
			if !ok {
				return &fault{NoBTFField, errno.ENOENT, offs}
			}
			place, bits, c = place+m.Offset, m.Bits, m.Type
			offs += len(text) - len(next)
			text = next
		}
		if !p.code.next() {
			return bad(offs, TooManyOps)
		}
		*p.code.op() = Op{Code: OpDeref, Offset: int64(place / 8)}
		p.last = &typed{c: c, off: place % 8, bits: bits}
	}
	return nil
}

// infer is the argument type of what was fetched: integers by size and sign,
// pointers x64, bitfields 64 bits. Nil leaves the default.
func (p *parser) infer() *Type {
	name := ""
	if _, pointer := p.last.c.Target(); pointer {
		name = "x64"
	} else if size, signed, ok := p.last.c.Int(); ok {
		if p.last.bits > 0 {
			size = 8
		}
		name = map[bool]string{true: "s", false: "u"}[signed] + fmt.Sprint(8*size)
	}
	return findType(name, p.c.Types)
}

// asText prepares a typed value to be fetched as text: an array of characters
// is there, a pointer to them is followed (check_prepare_btf_string_fetch).
func (p *parser) asText(place, offs int) error {
	if elem, ok := p.last.c.Elem(); ok && elem.Char() {
		return nil
	}
	if target, ok := p.last.c.Target(); !ok || !target.Char() {
		return bad(place, BadType4Str)
	}
	if !p.code.next() {
		return bad(offs, TooManyOps)
	}
	*p.code.op() = Op{Code: OpDeref}
	return nil
}

// typedBitfield takes a bitfield out of the 8 bytes that were stored.
func (p *parser) typedBitfield(offs int) error {
	if p.last == nil || p.last.bits == 0 {
		return nil
	}
	if !p.code.spare() {
		return bad(offs, TooManyOps)
	}
	*p.code.op() = Op{
		Code: OpBitfield, Size: 8, Left: uint8(64 - p.last.bits - p.last.off), Right: uint8(64 - p.last.bits),
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

// offsetOf is where members of members lie in a structure, in bytes; 0 where
// BTF does not say.
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
