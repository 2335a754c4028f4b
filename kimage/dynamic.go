package kimage

import "kprobelab/x86"

// relocateDynamic does what a program's loader would, with the symbols that
// the file itself defines: base-relative words and addresses of its own
// functions. Others stay zero, so that a use of them faults.
func (img *Image) relocateDynamic(f *elfFile) error {
	tables := map[uint32][]elfSymbol{}
	for i := range f.shdrs {
		r := &f.shdrs[i]
		if r.typ != shtRela || r.flags&shfAlloc == 0 || int(r.link) >= len(f.shdrs) {
			continue
		}
		table := &f.shdrs[r.link]
		if _, ok := tables[r.link]; !ok && table.typ == shtDynsym && int(table.link) < len(f.shdrs) {
			tables[r.link] = readSymbols(f.content(table), f.content(&f.shdrs[table.link]))
		}
		for b := f.content(r); len(b) >= relaSize; b = b[relaSize:] {
			img.relocateWord(readRela(b), tables[r.link])
		}
	}
	return nil
}

func (img *Image) relocateWord(r rela, syms []elfSymbol) {
	place := img.bytes(x86.Addr(programBase+r.off), 8)
	if place == nil {
		return
	}
	switch r.typ {
	case rRelative:
		le.PutUint64(place, programBase+uint64(r.addend))
	case r64, rGlobDat, rJumpSlot:
		if int(r.sym) < len(syms) && syms[r.sym].shndx != shnUndef {
			le.PutUint64(place, programBase+syms[r.sym].value+uint64(r.addend))
		}
	}
}
