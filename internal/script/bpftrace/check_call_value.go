package bpftrace

import (
	"net/netip"
	"slices"
	"strings"

	"kprobelab/internal/script"
)

func (c *checker) strType(n *node) *Type {
	size := c.maxStr
	defer func() { c.positional = false }()
	if !c.count(n, 1, 2) {
		return withSpace(stringOf(size), script.KernelSpace)
	}
	a := n.kids[0]
	if !a.typ.isInt() && a.typ.Kind != Pointer {
		c.error(n.at, "str() expects an integer or a pointer type as first argument (%s provided)", a.typ)
	}
	if len(n.kids) == 2 && c.arg(n, 1, Integer, false) {
		if n.kids[1].op == nInt {
			switch v := int64(n.kids[1].num); {
			case v < 0:
				if c.final {
					c.error(n.at, "strcannot use negative length (%d)", v)
				}
			case v <= int64(size):
				size = int(v)
			default:
				c.warn(n.at, "length param (%d) is too long and will be shortened to %d bytes (see BPFTRACE_MAX_STRLEN)", v, size)
			}
		}
	}
	if c.positional {
		switch {
		case a.op == nParam:
			n.post = true // what is given is known beforehand
		case a.op == nBinary && (a.kids[0].op == nParam || a.kids[1].op == nParam):
			c.positionalOffset(a)
		default:
			c.error(n.at, "str() only accepts positional parameters directly or with a single constant offset added")
		}
	}
	return withSpace(stringOf(size), script.KernelSpace)
}

func (c *checker) positionalOffset(b *node) {
	p, off := b.kids[0], b.kids[1]
	if p.op != nParam {
		p, off = off, p
	}
	size := len(c.param(int(p.num)))
	if c.final && (off.op != nInt || b.text != "+" || off.negative || off.num > uint64(size)) {
		c.error(b.at.with(b.kids[1].at), "only addition of a single constant less or equal to the length of $%d (which is %d) is allowed inside str()", p.num, size)
	}
}

func (c *checker) bufType(n *node) *Type {
	t := &Type{Kind: Buffer, Size: c.maxStr - bufferHead, Space: script.KernelSpace}
	if !c.count(n, 1, 2) {
		return t
	}
	a := n.kids[0].typ
	if c.final && !a.isInt() && a.Kind != String && a.Kind != Pointer && a.Kind != Array {
		c.error(n.at, "buf() expects an integer, string, or array argument but saw %s", a.kind())
	}
	if len(n.kids) == 1 {
		if a.Kind == Array {
			t.Size = min(t.Size, a.Size)
		} else if c.final {
			c.error(n.at, "buf() expects a length argument for non-array type %s", a.kind())
		}
		return t
	}
	if c.final {
		c.arg(n, 1, Integer, false)
	}
	if b := n.kids[1]; b.typ.isInt() && b.literal() {
		switch v, ok := c.number(b); {
		case !ok:
			c.error(n.at, "buf: invalid length value")
		default:
			if v < 0 {
				c.error(n.at, "buf cannot use negative length (%d)", v)
			}
			// The tool keeps 32 bits of it.
			if int64(uint32(v)) > int64(t.Size) {
				c.warn(n.at, "buf() length is too long and will be shortened to %d bytes (see BPFTRACE_MAX_STRLEN)", c.maxStr)
			}
			t.Size = int(min(int64(t.Size), int64(uint32(v))))
		}
	}
	return t
}

func (c *checker) conversion(n *node) *Type {
	most := 1
	if n.text == "ntop" {
		most = 2
	}
	if n.text == "ntop" {
		if !c.count(n, 1, 2) {
			return none
		}
	} else if !c.count(n, 1, 1) {
		return none
	}
	a := n.kids[len(n.kids)-1].typ
	switch n.text {
	case "ksym", "usym":
		if !a.isInt() && a.Kind != Pointer {
			c.error(n.at, "%s() expects an integer or pointer argument", n.text)
		}
		if n.text == "usym" {
			return &Type{Kind: Usym, Size: 16}
		}
		return &Type{Kind: Ksym, Size: 8}
	case "strerror":
		c.arg(n, 0, Integer, false)
		return &Type{Kind: Strerror, Size: 8}
	case "bswap":
		if !a.isInt() {
			c.error(n.at, "bswap() only supports integer arguments (%s provided)", a.kind())
			return none
		}
		return integer(a.Size, false)
	case "kptr", "uptr":
		if !a.isInt() && a.Kind != Pointer {
			c.error(n.at, "%s() only supports integer or pointer arguments (%s provided)", n.text, a.kind())
			return none
		}
		if n.text == "uptr" {
			return withSpace(a, script.UserSpace)
		}
		return withSpace(a, script.KernelSpace)
	case "macaddr":
		bytes := a.Kind == Array || slices.Contains(byteArrays, a.Kind)
		if !a.isInt() && a.Kind != Pointer && !bytes {
			c.error(n.at, "macaddr() only supports array or pointer arguments (%s provided)", a.kind())
		}
		if bytes && a.stored() != 6 {
			c.error(n.at, "macaddr() argument must be 6 bytes in size")
		}
		if n.kids[0].op == nString {
			c.error(n.at, "macaddr() does not support literal string arguments")
		}
		return &Type{Kind: Mac, Size: 6}
	case "ntop":
		if len(n.kids) == most {
			c.arg(n, 0, Integer, false)
		}
		if !a.isInt() && a.Kind != String && a.Kind != Array {
			c.error(n.at, "ntop() expects an integer or array argument, got %s", a.kind())
		} else if !a.isInt() && a.Size != 4 && a.Size != 16 {
			c.error(n.at, "ntop() argument must be 4 or 16 bytes in size")
		}
		return &Type{Kind: Inet, Size: 24}
	}
	text := n.kids[0].text
	addr, err := netip.ParseAddr(text)
	switch {
	case n.kids[0].op != nString || !strings.ContainsAny(text, ".:"):
		c.error(n.at, "pton() expects an string argument of an IPv4/IPv6 address, got %s", text)
		return none
	case err != nil || addr.Zone() != "":
		c.error(n.at, "pton() expects a valid IPv4/IPv6 address, got %s", text)
		return none
	}
	size := 16
	if strings.Contains(text, ".") && !strings.Contains(text, ":") {
		size = 4
	}
	return &Type{Kind: Array, Elem: integer(1, false), N: size, Size: size, Space: script.KernelSpace, Own: true}
}

func (c *checker) stack(n *node) *Type {
	t := c.stackOf(n.text)
	if !c.count(n, 0, 2) {
		return t
	}
	limit := -1
	switch len(n.kids) {
	case 1:
		if n.kids[0].typ.Kind == StackMode {
			t.Name = n.kids[0].text
		} else {
			limit = 0
		}
	case 2:
		if c.arg(n, 0, StackMode, true) {
			t.Name = n.kids[0].text
		}
		limit = 1
	}
	if limit >= 0 && c.arg(n, limit, Integer, true) {
		v, _ := c.number(n.kids[limit])
		if uint64(v) > 1024 {
			c.error(n.at, "%s([int limit]): limit shouldn't exceed 1024, %d given", n.text, v)
			return t
		}
		t.N = int(v)
	}
	return t
}
