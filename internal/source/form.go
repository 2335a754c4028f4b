package source

import (
	"debug/dwarf"
	"fmt"

	"kprobelab/internal/bounded"
)

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

// abbrevsAt returns the abbreviations at an offset of .debug_abbrev.
func (f *File) abbrevsAt(at uint64) (abbrevs, error) {
	if a, ok := f.abbrevs[at]; ok {
		return a, nil
	}
	b := cursor{b: f.debug["debug_abbrev"]}
	b.skip(at)
	out := abbrevs{}
	for len(out) < bounded.Abbreviations {
		a := &abbrev{}
		code, more := b.abbrev(&a.tag, &a.children, func(attr dwarf.Attr, form uint16) { a.fields = append(a.fields, field{attr, form}) })
		if !more {
			break
		}
		out[code] = a
	}
	if b.bad {
		return nil, fmt.Errorf("%w: .debug_abbrev is cut off", ErrDamaged)
	}
	f.abbrevs[at] = out
	return out, nil
}

// abbrev reads one abbreviation; more is false at the end of a table.
func (c *cursor) abbrev(tag *dwarf.Tag, children *bool, each func(attr dwarf.Attr, form uint16)) (code uint64, more bool) {
	if code = c.uleb(); code == 0 || c.bad {
		return 0, false
	}
	*tag, *children = dwarf.Tag(c.uleb()), c.u8() != 0
	for !c.bad {
		attr, form := c.uleb(), c.uleb()
		if form == formImplicitConst {
			c.sleb()
		}
		if attr == 0 && form == 0 {
			break
		}
		each(dwarf.Attr(attr), uint16(form))
	}
	return code, true
}

// allAbbrevs refuses units whose tables of abbreviations are too long, all together. Each offset is a table of its own: a short
// section is a long table for each of its bytes.
func (f *File) allAbbrevs() error {
	seen := map[uint64]bool{}
	left := uint64(bounded.AbbreviationTables)
	for i := range f.headers {
		at := f.headers[i].abbrev
		if seen[at] {
			continue
		}
		seen[at] = true
		b := cursor{b: f.debug["debug_abbrev"]}
		b.skip(at)
		for from, more := b.at, true; more; from = b.at {
			var a abbrev
			_, more = b.abbrev(&a.tag, &a.children, func(dwarf.Attr, uint16) {})
			if b.at-from > left {
				return fmt.Errorf("%w: its units' tables of abbreviations have more than %d MiB", ErrTooMuch, bounded.AbbreviationTables>>20)
			}
			left -= b.at - from
		}
	}
	return nil
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

// size returns a form's size in a unit, or -1 if the size has to be read.
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
