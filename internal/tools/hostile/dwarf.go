//go:build linux

package main

import (
	"bytes"
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"math/rand/v2"
	"slices"
)

// DWARF's forms and operations (DWARF 4, "Attribute Encodings").
const (
	formAddr    = 0x01
	formData8   = 0x07
	formString  = 0x08
	formData1   = 0x0b
	formUdata   = 0x0f
	formRef4    = 0x13
	formExpr    = 0x18
	formPresent = 0x19

	opReg5 = 0x55
)

// attr is an attribute with its form.
type attr struct {
	name dwarf.Attr
	form byte
}

// shape is an abbreviation: the entries of a tag that look alike.
type shape struct {
	tag      dwarf.Tag
	children bool
	attrs    []attr
}

var (
	named  = attr{dwarf.AttrName, formString}
	typed  = attr{dwarf.AttrType, formRef4}
	sized  = attr{dwarf.AttrByteSize, formUdata}
	bodied = attr{dwarf.AttrDataMemberLoc, formUdata}
	ranged = []attr{{dwarf.AttrLowpc, formAddr}, {dwarf.AttrHighpc, formData8}}
)

// shapes lists the kinds of entries. The first three (unit, function, parameter) stand at fixed places; the others are drawn.
var shapes = []shape{
	{dwarf.TagCompileUnit, true, append([]attr{named}, ranged...)},
	{dwarf.TagSubprogram, true, append([]attr{named, typed, {dwarf.AttrExternal, formPresent}}, ranged...)},
	{dwarf.TagFormalParameter, false, []attr{named, typed, {dwarf.AttrLocation, formExpr}}},
	{dwarf.TagBaseType, false, []attr{named, sized, {dwarf.AttrEncoding, formData1}}},
	{dwarf.TagPointerType, false, []attr{typed}},
	{dwarf.TagTypedef, false, []attr{named, typed}},
	{dwarf.TagConstType, false, []attr{typed}},
	{dwarf.TagVolatileType, false, []attr{typed}},
	{dwarf.TagRestrictType, false, []attr{typed}},
	{dwarf.TagArrayType, true, []attr{typed}},
	{dwarf.TagSubrangeType, false, []attr{{dwarf.AttrUpperBound, formUdata}}},
	{dwarf.TagStructType, true, []attr{named, sized}},
	{dwarf.TagUnionType, true, []attr{named, sized}},
	{dwarf.TagMember, false, []attr{named, typed, bodied}},
	{dwarf.TagEnumerationType, false, []attr{named, sized, typed}},
	{dwarf.TagSubroutineType, true, []attr{typed}},
	{dwarf.TagInlinedSubroutine, true, append([]attr{{dwarf.AttrAbstractOrigin, formRef4}}, ranged...)},
	{dwarf.TagLexDwarfBlock, true, ranged},
	{dwarf.TagVariable, false, []attr{named, typed, {dwarf.AttrLocation, formExpr}}},
}

// drawing is a unit's entries as they are drawn.
type drawing struct {
	rng *rand.Rand
	b   []byte
	// at are the places of types, to is where references stand: they are filled in at the end.
	at, to    []int
	low, size uint64
}

func (d *drawing) shape(tag dwarf.Tag) int {
	return slices.IndexFunc(shapes, func(s shape) bool { return s.tag == tag })
}

// begin writes an entry without what lies in it.
func (d *drawing) begin(n int, name string) {
	d.at = append(d.at, len(d.b))
	d.b = binary.AppendUvarint(d.b, uint64(n+1))
	for _, a := range shapes[n].attrs {
		switch a.form {
		case formAddr:
			d.b = binary.LittleEndian.AppendUint64(d.b, d.low)
		case formData8:
			d.b = binary.LittleEndian.AppendUint64(d.b, d.size)
		case formString:
			d.b = append(append(d.b, name...), 0)
		case formData1:
			d.b = append(d.b, byte(1+d.rng.IntN(8)))
		case formUdata:
			v := uint64(d.rng.IntN(64))
			if d.rng.IntN(6) == 0 {
				v = odd[d.rng.IntN(len(odd))]
			}
			d.b = binary.AppendUvarint(d.b, v)
		case formRef4:
			d.to = append(d.to, len(d.b))
			d.b = append(d.b, 0, 0, 0, 0)
		case formExpr:
			e := []byte{opReg5}
			if d.rng.IntN(4) == 0 {
				e = make([]byte, d.rng.IntN(40))
				for i := range e {
					e[i] = byte(d.rng.Uint32())
				}
			}
			d.b = append(append(d.b, byte(len(e))), e...)
		}
	}
}

// types draws n types, and others in them to a depth.
func (d *drawing) types(n, depth int) {
	only := -1
	if d.rng.IntN(3) == 0 {
		only = 4 + d.rng.IntN(12) // a chain
	}
	for range n {
		kind := only
		if kind < 0 {
			kind = 3 + d.rng.IntN(len(shapes)-3)
		}
		d.begin(kind, []string{"", "s", "p", "a", "z", "gcd"}[d.rng.IntN(6)])
		if !shapes[kind].children {
			continue
		}
		for range d.rng.IntN(4) {
			d.begin([]int{d.shape(dwarf.TagMember), d.shape(dwarf.TagSubrangeType), d.shape(dwarf.TagFormalParameter)}[d.rng.IntN(3)], []string{"", "a", "z"}[d.rng.IntN(3)])
		}
		if depth > 0 && d.rng.IntN(4) == 0 {
			d.types(1+d.rng.IntN(4), depth-1)
		}
		d.b = append(d.b, 0)
	}
}

// drawnDWARF is debugging information of a function gcd whose parameters have types that are drawn, and its abbreviations.
// Some of both is damaged.
func drawnDWARF(rng *rand.Rand, low, size uint64) (info, abbrev []byte) {
	for i, s := range shapes {
		abbrev = binary.AppendUvarint(abbrev, uint64(i+1))
		abbrev = binary.AppendUvarint(abbrev, uint64(s.tag))
		has := byte(0)
		if s.children {
			has = 1
		}
		abbrev = append(abbrev, has)
		for _, a := range s.attrs {
			abbrev = append(binary.AppendUvarint(abbrev, uint64(a.name)), a.form)
		}
		abbrev = append(abbrev, 0, 0)
	}
	abbrev = append(abbrev, 0)
	d := &drawing{rng: rng, low: low, size: size, b: []byte{0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8}} // length, version 4, abbreviations at 0, words of 8 bytes
	d.begin(d.shape(dwarf.TagCompileUnit), "gcd.c")
	d.begin(d.shape(dwarf.TagSubprogram), "gcd")
	params := 1 + rng.IntN(3)
	if rng.IntN(10) == 0 {
		params = rng.IntN(1 << 14)
	}
	for range params {
		d.begin(d.shape(dwarf.TagFormalParameter), "p")
	}
	d.b = append(d.b, 0)
	d.at = d.at[:0] // those are no types
	d.types(1<<rng.IntN(13), []int{2, 8, 600}[rng.IntN(3)])
	d.b = append(d.b, 0)
	binary.LittleEndian.PutUint32(d.b, uint32(len(d.b)-4))
	for i, to := range d.to {
		at := d.at[rng.IntN(min(len(d.at), 3))]
		switch rng.IntN(4) {
		case 0:
			at = d.at[rng.IntN(len(d.at))]
		case 1, 2:
			at = d.at[min(i/2, len(d.at)-1)] // about the next one
		}
		if rng.IntN(500) == 0 {
			at = rng.IntN(len(d.b))
		}
		binary.LittleEndian.PutUint32(d.b[to:], uint32(at))
	}
	info = d.b
	if rng.IntN(5) == 0 {
		info = mutate(rng, info)
	}
	if rng.IntN(10) == 0 {
		abbrev = mutate(rng, abbrev)
	}
	return info, abbrev
}

// withSections is an ELF with more sections, at its end; their names, too.
func withSections(image []byte, more map[string][]byte) []byte {
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return image
	}
	le := binary.LittleEndian
	const header = 64
	names := f.Sections[len(f.Sections)-1] // .shstrtab
	text, err := names.Data()
	if err != nil {
		return image
	}
	b := slices.Clone(image)
	table := slices.Clone(image[le.Uint64(image[40:]):][:len(f.Sections)*header])
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for n := range more {
			if !yield(n) {
				return
			}
		}
	}) {
		h := make([]byte, header)
		le.PutUint32(h, uint32(len(text)))
		le.PutUint32(h[4:], uint32(elf.SHT_PROGBITS))
		le.PutUint64(h[24:], uint64(len(b)))
		le.PutUint64(h[32:], uint64(len(more[name])))
		le.PutUint64(h[48:], 1)
		text = append(append(text, name...), 0)
		b = append(b, more[name]...)
		table = append(table, h...)
	}
	h := table[(len(f.Sections)-1)*header:]
	le.PutUint64(h[24:], uint64(len(b)))
	le.PutUint64(h[32:], uint64(len(text)))
	b = append(b, text...)
	le.PutUint64(b[40:], uint64(len(b)))
	le.PutUint16(b[60:], uint16(len(table)/header))
	return append(b, table...)
}

// oddDWARF asks all that one can ask of types, of debugging information.
func oddDWARF(c *tryOut) {
	info, abbrev := drawnDWARF(c.rng, c.seeds.gcdAddr, uint64(c.seeds.room))
	image := c.seeds.guest
	if c.rng.IntN(2) == 0 {
		image = withBTF(image, []byte{0}) // no other types
	}
	c.askTypes(c.file("dwarf.elf", withSections(image, map[string][]byte{".debug_info": info, ".debug_abbrev": abbrev})))
}
