package infer

import (
	"kprobelab/decoder"
	"kprobelab/x86"
)

// The bounds of the text of interrupt entry, which to 5.7 is treated as entry
// text is: nothing is probed or optimized there.
const (
	IRQEntryStart = "__irqentry_text_start"
	IRQEntryEnd   = "__irqentry_text_end"
)

// lookIRQEntry tells whether one of the functions compares with the end of that text,
// or passes it on. It cannot tell if that address is the bound of entry text as well.
func lookIRQEntry(names ...string) func(*Evidence) (bool, string, bool) {
	return func(e *Evidence) (bool, string, bool) {
		entry, irqEntry := e.img.EntryText()
		end := irqEntry.End
		if irqEntry.Start >= end || end == entry.Start || end == entry.End {
			return false, "", false
		}
		for _, name := range names {
			found := e.img.Lookup(name)
			if len(found) != 1 {
				continue
			}
			code := e.img.Bytes(found[0].Addr, int(found[0].Size))
			if code == nil {
				return false, "", false
			}
			if mentions(code, end) {
				return true, name + " knows " + IRQEntryEnd, true
			}
			return false, name + " knows no " + IRQEntryEnd, true
		}
		return false, "", false
	}
}

// mentions reports whether an instruction has the address as its immediate operand.
func mentions(code []byte, a x86.Addr) bool {
	for len(code) > 0 {
		i, err := decoder.Decode(code)
		if err != nil {
			return false
		}
		if i.ImmLen >= 4 && i.Imm() == int64(a) {
			return true
		}
		code = code[i.Length:]
	}
	return false
}
