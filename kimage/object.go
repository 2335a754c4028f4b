package kimage

import (
	"fmt"

	"kprobelab/kimage/evidence"
	"kprobelab/x86"
)

// objectBase is the address at which a relocatable object is laid out: the kernel's
// text address, so that its code runs at the addresses of kernel code.
const objectBase = 0xffffffff81000000

// externBase is the address of an object's first undefined symbol. Nothing is
// mapped there, so a call of such a symbol faults at an address that tells which it
// was.
const externBase = objectBase - 1<<20

// objectLayout is a relocatable file on its way to an image.
type objectLayout struct {
	img *Image
	f   *elfFile
	// placed are the sections by their index in the file; nil if not allocated.
	placed []*Section
	syms   []elfSymbol
	addrs  []x86.Addr
	next   uint64
	budget uint64
	// skipped counts the relocations that were left alone, by type.
	skipped map[uint32]int
	// missing has the undefined symbols that something refers to.
	missing map[uint32]bool
}

// layObject lays an ET_REL file out as an image of its own, one section after
// the other, code first, and applies its relocations.
func (img *Image) layObject(f *elfFile) error {
	o := &objectLayout{img: img, f: f, placed: make([]*Section, len(f.shdrs)), next: objectBase,
		budget: 16*uint64(len(f.data)) + 64<<20, skipped: map[uint32]int{}, missing: map[uint32]bool{}}
	classes := []func(s *elfSection) bool{
		func(s *elfSection) bool { return s.flags&shfExec != 0 },
		func(s *elfSection) bool { return s.flags&(shfExec|shfWrite) == 0 },
		func(s *elfSection) bool { return s.flags&shfExec == 0 && s.flags&shfWrite != 0 && s.typ != shtNobits },
		func(s *elfSection) bool { return s.flags&shfExec == 0 && s.flags&shfWrite != 0 && s.typ == shtNobits },
	}
	for _, class := range classes {
		if err := o.place(class); err != nil {
			return err
		}
	}
	o.placeOthers()
	o.syms = f.symbols()
	o.resolve()
	if err := o.relocate(); err != nil {
		return err
	}
	img.index.setImage(img.objectSymbols(o))
	return nil
}

func (img *Image) objectSymbols(o *objectLayout) ([]Symbol, func(x86.Addr) x86.Addr) {
	i := -1
	list := kallsymsOf(o.syms, func(s *elfSymbol) (x86.Addr, *Section) {
		for i++; &o.syms[i] != s; i++ { // kallsymsOf goes through the table in order
		}
		if s.shndx == shnCommon {
			return o.addrs[i], img.section(".common")
		}
		if int(s.shndx) < len(o.placed) {
			return o.addrs[i], o.placed[s.shndx]
		}
		return o.addrs[i], nil
	})
	img.findBounds(list)
	return list, img.bounds.symbolEnd(list)
}

// place lays the allocated sections of one class out, from a page boundary
// on, as one segment.
func (o *objectLayout) place(class func(*elfSection) bool) error {
	start := pageUp(o.next)
	at := start
	var list []int
	for i := range o.f.shdrs {
		s := &o.f.shdrs[i]
		if s.typ == 0 || s.flags&shfAlloc == 0 || s.flags&shfTLS != 0 || s.name == ".data..percpu" || !class(s) || s.size == 0 {
			continue
		}
		at = (at + s.align - 1) &^ (s.align - 1)
		s.addr = at
		at += s.size
		if at-start > o.budget {
			return badFormat(o.f.name, -1, "section %s does not fit: the object would take %#x bytes", s.name, at-start)
		}
		list = append(list, i)
	}
	if len(list) == 0 {
		return nil
	}
	o.budget -= at - start
	o.next = at
	first := &o.f.shdrs[list[0]]
	g := Segment{Name: first.name, Addr: x86.Addr(start), Size: at - start, Write: first.flags&shfWrite != 0, Exec: first.flags&shfExec != 0}
	if first.typ != shtNobits || !g.Write {
		g.Data = make([]byte, at-start)
	}
	for _, i := range list {
		s := &o.f.shdrs[i]
		var data []byte
		if g.Data != nil {
			off := s.addr - start
			data = g.Data[off : off+s.size : off+s.size]
			copy(data, o.f.content(s))
		}
		o.placed[i] = newSection(s, x86.Addr(s.addr), data)
	}
	o.img.segments = append(o.img.segments, g)
	for _, i := range list {
		o.img.sections = append(o.img.sections, o.placed[i])
	}
	return nil
}

// placeOthers keeps the sections that are not mapped, the per-CPU template
// among them.
func (o *objectLayout) placeOthers() {
	for i := range o.f.shdrs {
		s := &o.f.shdrs[i]
		if s.typ == 0 || o.placed[i] != nil {
			continue
		}
		sec := newSection(s, 0, append([]byte(nil), o.f.content(s)...))
		o.img.other = append(o.img.other, sec)
		if s.name == ".data..percpu" && s.typ != shtNobits {
			o.img.percpu, o.placed[i] = sec, sec
		}
	}
}

// resolve gives every symbol its address: common ones in a section of their
// own, undefined ones in the unmapped extern area.
func (o *objectLayout) resolve() {
	o.addrs = make([]x86.Addr, len(o.syms))
	extern := x86.Addr(externBase)
	common := pageUp(o.next)
	at := common
	for i := range o.syms {
		s := &o.syms[i]
		switch {
		case i == 0:
		case s.shndx == shnUndef:
			o.addrs[i] = extern
			extern += 16
		case s.shndx == shnCommon: // the value is the alignment; 16 serves all of C
			at = (at + 15) &^ 15
			o.addrs[i] = x86.Addr(at)
			at += min(s.size, 1<<20)
		case s.shndx == shnAbs:
			o.addrs[i] = x86.Addr(s.value)
		case int(s.shndx) < len(o.placed) && o.placed[s.shndx] != nil:
			o.addrs[i] = o.placed[s.shndx].Addr + x86.Addr(s.value)
		}
	}
	if at == common {
		return
	}
	sec := &Section{Name: ".common", Addr: x86.Addr(common), Size: at - common, Align: 16, Alloc: true, Write: true, zero: true}
	o.img.sections = append(o.img.sections, sec)
	o.img.segments = append(o.img.segments, Segment{Name: sec.Name, Addr: sec.Addr, Size: sec.Size, Write: true})
}

// relocate applies every relocation section whose target was placed.
func (o *objectLayout) relocate() error {
	for i := range o.f.shdrs {
		r := &o.f.shdrs[i]
		if r.typ != shtRela || int(r.info) >= len(o.placed) || o.placed[r.info] == nil {
			continue
		}
		target := o.placed[r.info]
		for b, at := o.f.content(r), r.off; len(b) >= relaSize; b, at = b[relaSize:], at+relaSize {
			rel := readRela(b)
			if uint64(rel.sym) >= uint64(len(o.addrs)) {
				return badFormat(o.f.name, int64(at), "a relocation names symbol %d of %d", rel.sym, len(o.addrs))
			}
			if err := o.apply(target, rel, int64(at)); err != nil {
				return err
			}
		}
	}
	for typ, n := range o.skipped {
		o.img.facts = append(o.img.facts, evidence.Fact{Name: "relocations left alone", Value: fmt.Sprintf("%d of type %d", n, typ),
			Evidence: "they need a linker (a global offset table, or thread-local storage)"})
	}
	return nil
}

func (o *objectLayout) apply(target *Section, r rela, at int64) error {
	s := &o.syms[r.sym]
	if s.shndx == shnUndef && patchOut(target.Data, r, s.name) {
		return nil
	}
	if s.shndx == shnUndef && s.name != "" && !o.missing[r.sym] {
		o.missing[r.sym] = true
		o.img.facts = append(o.img.facts, evidence.Fact{Name: "undefined", Value: s.name,
			Evidence: "not in the file: " + o.addrs[r.sym].String() + ", where nothing is, stands for it"})
	}
	switch done, err := r.apply(target, o.addrs[r.sym]); {
	case err != nil:
		return badFormat(o.f.name, at, "relocation of %s+%#x to %s: %v", target.Name, r.off, s.name, err)
	case !done:
		o.skipped[r.typ]++
	}
	return nil
}
