package kimage

import (
	"errors"
	"fmt"

	"kprobelab/x86"
)

// offsetTableName is the symbol that position-independent code names the
// global offset table by.
const offsetTableName = "_GLOBAL_OFFSET_TABLE_"

// Relocation types that only plain objects have (System V ABI, AMD64
// supplement, "Relocation Types").
const (
	r16       = 12
	rPC16     = 13
	r8        = 14
	rPC8      = 15
	rGotOff64 = 25
	rGotPC32  = 26
)

// offsetTable is a small global offset table, for objects that were compiled as
// position-independent. It is filled while relocating, and follows the module's
// data.
type offsetTable struct {
	at    x86.Addr
	slots []x86.Addr
	index map[x86.Addr]int
}

// slot returns the address of the table's entry for a symbol's address.
func (t *offsetTable) slot(a x86.Addr) x86.Addr {
	i, ok := t.index[a]
	if !ok {
		i = len(t.slots)
		t.index[a] = i
		t.slots = append(t.slots, a)
	}
	return t.at + x86.Addr(8*i)
}

// relocate applies every relocation section whose target was loaded, and adds
// the offset table that they used.
func (m *moduleFile) relocate() error {
	m.got = &offsetTable{at: m.next, index: map[x86.Addr]int{}}
	for i := range m.f.shdrs {
		r := &m.f.shdrs[i]
		if r.typ != shtRela || int(r.info) >= len(m.placed) || m.placed[r.info] == nil {
			continue
		}
		target := m.placed[r.info]
		for b, at := m.f.content(r), r.off; len(b) >= relaSize; b, at = b[relaSize:], at+relaSize {
			rel := readRela(b)
			if uint64(rel.sym) >= uint64(len(m.syms)) {
				return badFormat(m.f.name, int64(at), "a relocation names symbol %d of %d", rel.sym, len(m.syms))
			}
			if err := m.apply(target, rel); err != nil {
				return badFormat(m.f.name, int64(at), "relocation type %d of %s+%#x to %s: %v",
					rel.typ, target.Name, rel.off, m.symbolName(rel.sym), err)
			}
		}
	}
	if n := len(m.got.slots); n > 0 {
		g := m.segment(".got", m.got.at, uint64(8*n), false, false)
		for i, a := range m.got.slots {
			le.PutUint64(g.Data[8*i:], uint64(a))
		}
		m.sections = append(m.sections, &Section{Name: ".got", Addr: m.got.at, Data: g.Data, Size: g.Size, Align: 8, Alloc: true, Module: m.name})
	}
	return nil
}

// symbolName names a relocation's symbol for messages.
func (m *moduleFile) symbolName(i uint32) string {
	s := &m.syms[i]
	if s.name == "" && s.kind() == sttSection && int(s.shndx) < len(m.f.shdrs) {
		return m.f.shdrs[s.shndx].name
	}
	return s.name
}

var (
	errAbs32    = errors.New("a 32-bit unsigned address cannot reach the kernel's half: compile with -mcmodel=kernel or as position-independent")
	errTLS      = errors.New("thread-local storage does not exist in a kernel")
	errDropped  = errors.New("the symbol lies in a section that is not loaded")
	errUnmapped = fmt.Errorf("%w of 2 GiB around the place", errRelocRange)
)

// apply applies one relocation.
func (m *moduleFile) apply(target *Section, r rela) error {
	s := &m.syms[r.sym]
	addr := m.addrs[r.sym]
	if s.shndx == shnUndef && addr == 0 && patchOut(target.Data, r, s.name) {
		return nil
	}
	if int(s.shndx) < len(m.placed) && s.shndx != shnUndef && m.placed[s.shndx] == nil && m.f.shdrs[s.shndx].size > 0 {
		if r.typ == rNone {
			return nil
		}
		return errDropped
	}
	switch done, err := r.apply(target, addr); {
	case errors.Is(err, errRelocRange) && r.typ == r32:
		return errAbs32
	case errors.Is(err, errRelocRange):
		return errUnmapped
	case err != nil || done:
		return err
	}
	return m.applyRare(target, r, addr)
}

// applyRare applies what needs an offset table, and the short types.
func (m *moduleFile) applyRare(target *Section, r rela, addr x86.Addr) error {
	size := map[uint32]uint64{r8: 1, rPC8: 1, r16: 2, rPC16: 2, rGotOff64: 8}[r.typ]
	if size == 0 {
		size = 4
	}
	if n := uint64(len(target.Data)); r.off > n || size > n-r.off {
		return errRelocPlace
	}
	place, here := target.Data[r.off:], uint64(target.Addr)+r.off
	value := uint64(addr) + uint64(r.addend)
	switch r.typ {
	case rGotPCRel, rGotPCRelX, rRexGotPCRelX:
		return put32(place, uint64(m.got.slot(addr))+uint64(r.addend)-here)
	case rGotPC32:
		return put32(place, uint64(m.got.at)+uint64(r.addend)-here)
	case rGotOff64:
		le.PutUint64(place, value-uint64(m.got.at))
	case rPC8, rPC16:
		return putShort(place[:size], value-here)
	case r8, r16:
		return putShort(place[:size], value)
	case 16, 17, 18, 19, 20, 21, 22, 23, 34, 35, 36:
		return errTLS
	default:
		return fmt.Errorf("the type is not supported")
	}
	return nil
}

// putShort writes a value of one or two bytes, signed or not.
func putShort(b []byte, v uint64) error {
	bits := uint(8 * len(b))
	if sext := int64(v<<(64-bits)) >> (64 - bits); uint64(sext) != v && v>>bits != 0 {
		return errRelocRange
	}
	for i := range b {
		b[i] = byte(v >> (8 * i))
	}
	return nil
}
