package source

import (
	"debug/dwarf"
	"fmt"
)

// A kernel's .debug_info has some ten million entries, of which a question concerns a few. The
// standard library's reader makes an object of each, which takes half a minute. The code here
// passes over entries and gives only the attributes that tell whether a unit is worth reading.

// skimmed holds the parts of an entry that are read in passing.
type skimmed struct {
	at    uint64
	tag   dwarf.Tag
	depth int
	// name is nil if there is none, or if an index leads to it.
	name []byte
	// indexed: the name is in .debug_str_offsets.
	indexed bool
	// origin is the offset of an abstract origin, a specification or a call's origin, 0 if none.
	origin uint64
	// inline, code and declaration: the entry has these attributes.
	inline, code, declaration bool
}

// The attributes of a call in DWARF 5 and before, and the tags.
const (
	attrCallOrigin = dwarf.Attr(0x7f)
	attrLinkage    = dwarf.AttrLinkageName
	tagCall        = dwarf.Tag(0x48)
	tagGNUCall     = dwarf.Tag(0x4109)
)

// skim passes over the entries of a unit. With top, entries below the root's children
// are left out if the file says where they end.
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

// ref returns a reference as an offset of .debug_info, 0 if it leads out of it.
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
