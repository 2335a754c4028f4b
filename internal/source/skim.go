package source

import (
	"bytes"
	"debug/dwarf"
	"encoding/binary"
	"fmt"
	"sort"
)

// A kernel's .debug_info has some ten million entries, of which a question is about a few.
// The standard library's reader makes an object of each, which takes half a minute. What is
// here passes over entries and gives only what tells whether a unit is worth reading.

// header is the header of a unit.
type header struct {
	// start is where the header begins, root where the unit's first entry does, end where
	// the next header does; all in .debug_info.
	start, root, end uint64
	version          int
	addrSize         int
	// wide is for 64-bit DWARF.
	wide   bool
	abbrev uint64
	kind   byte
}

// Kinds of units in DWARF 5.
const (
	unitCompile  = 1
	unitType     = 2
	unitPartial  = 3
	unitSkeleton = 4
	unitSplit    = 5
	unitSplitTyp = 6
)

func (f *File) readHeaders() error {
	info := f.debug["debug_info"]
	for at := uint64(0); at < uint64(len(info)); {
		b := cursor{b: info, at: at}
		h := header{start: at, kind: unitCompile, addrSize: 8}
		length := uint64(b.u32())
		if length == 0xffffffff {
			h.wide, length = true, b.u64()
		}
		if b.bad || length > uint64(len(info))-b.at {
			return fmt.Errorf("%w: the unit at %#x is cut off", ErrDamaged, at)
		}
		h.end = b.at + length
		h.version = int(b.u16())
		switch {
		case h.version >= 5:
			h.kind, h.addrSize = b.u8(), int(b.u8())
			h.abbrev = b.offset(h.wide)
			switch h.kind {
			case unitSkeleton, unitSplit:
				b.skip(8)
			case unitType, unitSplitTyp:
				b.skip(8)
				b.offset(h.wide)
			}
		default:
			h.abbrev = b.offset(h.wide)
			h.addrSize = int(b.u8())
		}
		h.root = b.at
		if b.bad || h.root > h.end || h.version < 2 || h.version > 5 {
			return fmt.Errorf("%w: the unit at %#x has no header that is known here", ErrDamaged, at)
		}
		at = h.end
		if f.headers = append(f.headers, h); len(f.headers) > maxUnits {
			return fmt.Errorf("%w: more than %d units", ErrTooMuch, maxUnits)
		}
	}
	return nil
}

// unitAt is the header of the unit that an offset of .debug_info is in.
func (f *File) unitAt(at uint64) *header {
	i := sort.Search(len(f.headers), func(i int) bool { return f.headers[i].start > at })
	if i == 0 || at >= f.headers[i-1].end {
		return nil
	}
	return &f.headers[i-1]
}

// cursor reads bytes in order; bad is set once there are none left.
type cursor struct {
	b   []byte
	at  uint64
	bad bool
}

func (c *cursor) skip(n uint64) {
	if n > uint64(len(c.b))-c.at {
		c.bad, n = true, uint64(len(c.b))-c.at
	}
	c.at += n
}

func (c *cursor) take(n uint64) []byte {
	from := c.at
	if c.skip(n); c.bad {
		return make([]byte, min(n, 16))
	}
	return c.b[from:c.at]
}

func (c *cursor) u8() byte    { return c.take(1)[0] }
func (c *cursor) u16() uint16 { return binary.LittleEndian.Uint16(c.take(2)) }
func (c *cursor) u32() uint32 { return binary.LittleEndian.Uint32(c.take(4)) }
func (c *cursor) u64() uint64 { return binary.LittleEndian.Uint64(c.take(8)) }

func (c *cursor) offset(wide bool) uint64 {
	if wide {
		return c.u64()
	}
	return uint64(c.u32())
}

// leb is a number in LEB128: its bits, how many they are, and its last byte.
func (c *cursor) leb() (v uint64, bits uint, last byte) {
	for {
		if c.at >= uint64(len(c.b)) {
			c.bad = true
			return v, bits, 0
		}
		b := c.b[c.at]
		c.at++
		if bits < 64 {
			v |= uint64(b&0x7f) << bits
		}
		bits += 7
		if b < 0x80 {
			return v, bits, b
		}
	}
}

func (c *cursor) uleb() uint64 {
	v, _, _ := c.leb()
	return v
}

func (c *cursor) sleb() int64 {
	v, bits, last := c.leb()
	if last&0x40 != 0 && bits < 64 {
		v |= ^uint64(0) << bits
	}
	return int64(v)
}

// text is a string up to its NUL.
func (c *cursor) text() []byte {
	n := bytes.IndexByte(c.b[c.at:], 0)
	if n < 0 {
		c.bad = true
		return nil
	}
	s := c.b[c.at : c.at+uint64(n)]
	c.at += uint64(n) + 1
	return s
}

// abbrev is the form of an entry.
type abbrev struct {
	tag      dwarf.Tag
	children bool
	fields   []field
}

type field struct {
	attr dwarf.Attr
	form uint16
}

type abbrevs map[uint64]*abbrev

// maxAbbrevs bounds the forms of a unit's entries; a kernel's units have hundreds.
const maxAbbrevs = 1 << 16

// abbrevsAt are those at an offset of .debug_abbrev.
func (f *File) abbrevsAt(at uint64) (abbrevs, error) {
	if a, ok := f.abbrevs[at]; ok {
		return a, nil
	}
	b := cursor{b: f.debug["debug_abbrev"]}
	b.skip(at)
	out := abbrevs{}
	for n := 0; ; n++ {
		code := b.uleb()
		if code == 0 || b.bad || n > maxAbbrevs {
			break
		}
		a := &abbrev{tag: dwarf.Tag(b.uleb()), children: b.u8() != 0}
		for !b.bad {
			attr, form := b.uleb(), b.uleb()
			if form == formImplicitConst {
				b.sleb()
			}
			if attr == 0 && form == 0 {
				break
			}
			a.fields = append(a.fields, field{dwarf.Attr(attr), uint16(form)})
		}
		out[code] = a
	}
	if b.bad {
		return nil, fmt.Errorf("%w: .debug_abbrev is cut off", ErrDamaged)
	}
	f.abbrevs[at] = out
	return out, nil
}

// Forms, DWARF 5 table 7.6 and GNU's.
const (
	formAddr          = 0x01
	formBlock2        = 0x03
	formBlock4        = 0x04
	formData2         = 0x05
	formData4         = 0x06
	formData8         = 0x07
	formString        = 0x08
	formBlock         = 0x09
	formBlock1        = 0x0a
	formData1         = 0x0b
	formFlag          = 0x0c
	formSdata         = 0x0d
	formStrp          = 0x0e
	formUdata         = 0x0f
	formRefAddr       = 0x10
	formRef1          = 0x11
	formRef2          = 0x12
	formRef4          = 0x13
	formRef8          = 0x14
	formRefUdata      = 0x15
	formIndirect      = 0x16
	formSecOffset     = 0x17
	formExprloc       = 0x18
	formFlagPresent   = 0x19
	formStrx          = 0x1a
	formAddrx         = 0x1b
	formRefSup4       = 0x1c
	formStrpSup       = 0x1d
	formData16        = 0x1e
	formLineStrp      = 0x1f
	formRefSig8       = 0x20
	formImplicitConst = 0x21
	formLoclistx      = 0x22
	formRnglistx      = 0x23
	formRefSup8       = 0x24
	formStrx1         = 0x25
	formStrx2         = 0x26
	formStrx3         = 0x27
	formStrx4         = 0x28
	formAddrx1        = 0x29
	formAddrx2        = 0x2a
	formAddrx3        = 0x2b
	formAddrx4        = 0x2c
	formGNURefAlt     = 0x1f20
	formGNUStrpAlt    = 0x1f21
)

// sizes are of the forms that always have the same one.
var sizes = map[uint16]uint64{
	formData2: 2, formData4: 4, formData8: 8, formData1: 1, formFlag: 1, formRef1: 1, formRef2: 2, formRef4: 4, formRef8: 8,
	formFlagPresent: 0, formRefSup4: 4, formData16: 16, formRefSig8: 8, formImplicitConst: 0, formRefSup8: 8, formStrx1: 1,
	formStrx2: 2, formStrx3: 3, formStrx4: 4, formAddrx1: 1, formAddrx2: 2, formAddrx3: 3, formAddrx4: 4,
}

// size is a form's in a unit, or -1 where it has to be read.
func (h *header) size(form uint16) int {
	switch form {
	case formAddr:
		return h.addrSize
	case formStrp, formSecOffset, formStrpSup, formLineStrp, formGNURefAlt, formGNUStrpAlt:
		return h.word()
	case formRefAddr:
		if h.version <= 2 {
			return h.addrSize
		}
		return h.word()
	}
	if n, ok := sizes[form]; ok {
		return int(n)
	}
	return -1
}

func (h *header) word() int {
	if h.wide {
		return 8
	}
	return 4
}

func (h *header) pass(b *cursor, form uint16) {
	if n := h.size(form); n >= 0 {
		b.skip(uint64(n))
		return
	}
	switch form {
	case formBlock1:
		b.skip(uint64(b.u8()))
	case formBlock2:
		b.skip(uint64(b.u16()))
	case formBlock4:
		b.skip(uint64(b.u32()))
	case formBlock, formExprloc:
		b.skip(b.uleb())
	case formString:
		b.text()
	case formSdata, formUdata, formRefUdata, formStrx, formAddrx, formLoclistx, formRnglistx:
		b.uleb()
	case formIndirect:
		if form := uint16(b.uleb()); form != formIndirect {
			h.pass(b, form)
		} else {
			b.bad = true
		}
	default:
		b.bad = true
	}
}

// skimmed is what is seen of an entry in passing.
type skimmed struct {
	at    uint64
	tag   dwarf.Tag
	depth int
	// name is nil where there is none, or where an index leads to it.
	name []byte
	// indexed is for a name that is in .debug_str_offsets.
	indexed bool
	// origin is where an abstract origin, a specification or a call's origin is, 0 without.
	origin uint64
	// inline, code and declaration are whether the entry has these attributes.
	inline, code, declaration bool
}

// The attributes of a call in DWARF 5 and before, and the tags.
const (
	attrCallOrigin = dwarf.Attr(0x7f)
	attrLinkage    = dwarf.AttrLinkageName
	tagCall        = dwarf.Tag(0x48)
	tagGNUCall     = dwarf.Tag(0x4109)
)

// skim passes over the entries of a unit. With top, what is below the root's children is
// left out where the file says where it ends.
func (f *File) skim(h *header, top bool, emit func(*skimmed)) error {
	forms, err := f.abbrevsAt(h.abbrev)
	if err != nil {
		return err
	}
	info, strs := f.debug["debug_info"], f.debug["debug_str"]
	b := cursor{b: info[:h.end], at: h.root}
	depth := 0
	for b.at < h.end && !b.bad {
		e := skimmed{at: b.at, depth: depth}
		code := b.uleb()
		if code == 0 {
			if depth--; depth <= 0 {
				break
			}
			continue
		}
		a := forms[code]
		if a == nil {
			return fmt.Errorf("%w: the entry at %#x has no form", ErrDamaged, e.at)
		}
		e.tag = a.tag
		sibling := uint64(0)
		for _, fd := range a.fields {
			switch fd.attr {
			case dwarf.AttrName:
				switch fd.form {
				case formStrp:
					if at := b.offset(h.wide); at < uint64(len(strs)) {
						c := cursor{b: strs, at: at}
						e.name = c.text()
					}
					continue
				case formString:
					e.name = b.text()
					continue
				case formStrx, formStrx1, formStrx2, formStrx3, formStrx4:
					e.indexed = true
				}
			case dwarf.AttrSibling, dwarf.AttrAbstractOrigin, dwarf.AttrSpecification, attrCallOrigin:
				ref := h.ref(&b, fd.form)
				if fd.attr == dwarf.AttrSibling {
					sibling = ref
				} else {
					e.origin = ref
				}
				continue
			case dwarf.AttrInline:
				e.inline = true
			case dwarf.AttrLowpc, dwarf.AttrRanges:
				e.code = true
			case dwarf.AttrDeclaration:
				e.declaration = true
			}
			h.pass(&b, fd.form)
		}
		emit(&e)
		if !a.children {
			if depth == 0 {
				break
			}
			continue
		}
		if top && depth > 0 && sibling > b.at && sibling <= h.end {
			b.at = sibling
			continue
		}
		depth++
	}
	if b.bad {
		return fmt.Errorf("%w: the unit at %#x is cut off", ErrDamaged, h.start)
	}
	return nil
}

// ref is a reference as an offset of .debug_info, 0 where it leads out of it.
func (h *header) ref(b *cursor, form uint16) uint64 {
	switch form {
	case formRef1:
		return h.start + uint64(b.u8())
	case formRef2:
		return h.start + uint64(b.u16())
	case formRef4:
		return h.start + uint64(b.u32())
	case formRef8:
		return h.start + b.u64()
	case formRefUdata:
		return h.start + b.uleb()
	case formRefAddr:
		if h.size(form) == 8 {
			return b.u64()
		}
		return uint64(b.u32())
	}
	h.pass(b, form)
	return 0
}
