package kimage

import (
	"cmp"
	"slices"

	"kprobelab/x86"
)

const pageSize = 4096

func pageUp(n uint64) uint64 { return (n + pageSize - 1) &^ (pageSize - 1) }

// programBase is the address at which a position-independent program is laid out,
// as Linux does without randomization.
const programBase = 0x555555554000

// layLinked makes the sections and segments of a linked ELF. bias is added to
// every address.
func (img *Image) layLinked(f *elfFile, bias uint64) error {
	if len(f.shdrs) == 0 {
		f.shdrs = loadsAsSections(f)
	}
	var alloc []*elfSection
	for i := range f.shdrs {
		s := &f.shdrs[i]
		if s.typ == 0 || s.flags&shfTLS != 0 && s.typ == shtNobits {
			continue // a thread's zeros take no place in the image
		}
		if s.flags&shfAlloc == 0 {
			img.other = append(img.other, newSection(s, 0, f.content(s)))
			continue
		}
		s.addr += bias
		if s.size == 0 {
			continue
		}
		alloc = append(alloc, s)
	}
	slices.SortStableFunc(alloc, func(a, b *elfSection) int { return cmp.Compare(a.addr, b.addr) })
	alloc, err := img.takePerCPU(f, alloc)
	if err != nil {
		return err
	}
	for i := 1; i < len(alloc); i++ {
		if prev := alloc[i-1]; prev.addr+prev.size > alloc[i].addr {
			return badFormat(f.name, -1, "sections %s and %s overlap at %#x", prev.name, alloc[i].name, alloc[i].addr)
		}
	}
	for len(alloc) > 0 {
		n := f.groupLen(alloc, bias)
		img.layGroup(f, alloc[:n], bias)
		alloc = alloc[n:]
	}
	return nil
}

// loadsAsSections stands in for the section headers of a file that has none.
func loadsAsSections(f *elfFile) []elfSection {
	var list []elfSection
	for _, l := range f.loads {
		s := elfSection{name: ".load", typ: 1, flags: shfAlloc, addr: l.addr, off: l.off, size: l.filesz, align: 1}
		if l.write {
			s.flags |= shfWrite
		}
		if l.exec {
			s.flags |= shfExec
			s.name = ".text"
		}
		if l.memsz > l.filesz {
			bss := s
			bss.name, bss.typ = ".bss", shtNobits
			bss.addr, bss.size = l.addr+l.filesz, l.memsz-l.filesz
			list = append(list, bss)
		}
		if l.filesz > 0 {
			list = append(list, s)
		}
	}
	return list
}

// takePerCPU keeps the template of the per-CPU area apart: it is linked at 0
// (to 6.14) and mapped nowhere.
func (img *Image) takePerCPU(f *elfFile, alloc []*elfSection) ([]*elfSection, error) {
	for i, s := range alloc {
		if s.name == ".data..percpu" && s.typ != shtNobits {
			img.percpu = newSection(s, x86.Addr(s.addr), f.content(s))
			img.other = append(img.other, img.percpu)
			return slices.Delete(alloc, i, i+1), nil
		}
	}
	return alloc, nil
}

// load returns the index of the PT_LOAD that holds the section, or -1; if several
// overlap, only the last one to begin before the section can be it.
func (f *elfFile) load(s *elfSection, bias uint64) int {
	at := s.addr - bias
	i, found := slices.BinarySearchFunc(f.loads, at, func(l elfLoad, at uint64) int { return cmp.Compare(l.addr, at) })
	if !found {
		i--
	}
	if i < 0 || at+s.size > f.loads[i].addr+f.loads[i].memsz {
		return -1
	}
	return i
}

// groupLen returns the number of sections from the first on that make one segment:
// sections of one PT_LOAD that have the same protection or share a page.
func (f *elfFile) groupLen(list []*elfSection, bias uint64) int {
	first := list[0]
	load := f.load(first, bias)
	for n := 1; n < len(list); n++ {
		prev, s := list[n-1], list[n]
		if f.load(s, bias) != load {
			return n
		}
		if s.typ != shtNobits && (first.typ == shtNobits || s.addr-s.off != first.addr-first.off) {
			return n
		}
		same := f.protection(s, load) == f.protection(first, load)
		samePage := (prev.addr+prev.size-1)/pageSize == s.addr/pageSize
		if load < 0 && !samePage || !same && !samePage {
			return n
		}
	}
	return len(list)
}

// protection returns the rights that the section's flags ask for and its PT_LOAD
// grants: a kernel's .rodata is flagged writable but loaded read-only.
func (f *elfFile) protection(s *elfSection, load int) uint64 {
	p := s.flags & (shfWrite | shfExec)
	if load >= 0 && !f.loads[load].write {
		p &^= shfWrite
	}
	return p
}

// layGroup makes one segment of sections and shares its memory with them.
func (img *Image) layGroup(f *elfFile, list []*elfSection, bias uint64) {
	first, last := list[0], list[len(list)-1]
	load := f.load(first, bias)
	g := Segment{Name: first.name, Addr: x86.Addr(first.addr), Size: last.addr + last.size - first.addr}
	var fileEnd uint64
	for _, s := range list {
		p := f.protection(s, load)
		g.Write, g.Exec = g.Write || p&shfWrite != 0, g.Exec || p&shfExec != 0
		if s.typ != shtNobits {
			fileEnd = s.addr + s.size
		}
	}
	if fileEnd > 0 && first.typ != shtNobits {
		n := fileEnd - first.addr
		g.Data = f.data[first.off : first.off+n : first.off+n]
	}
	for _, s := range list {
		off := s.addr - first.addr
		end := min(off+s.size, uint64(len(g.Data)))
		var data []byte
		if off < end {
			data = g.Data[off:end:end]
		}
		sec := newSection(s, x86.Addr(s.addr), data)
		sec.Write = f.protection(s, load)&shfWrite != 0
		img.sections = append(img.sections, sec)
	}
	img.segments = append(img.segments, g)
}
