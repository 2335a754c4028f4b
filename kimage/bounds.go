package kimage

import (
	"strings"

	"kprobelab/kimage/internal/infer"
	"kprobelab/x86"
)

// bounds are the addresses that sort an image's text, from its symbols.
type bounds struct {
	stext, etext         x86.Addr
	sinittext, einittext x86.Addr
	// end is _end.
	end x86.Addr
	// entry is the entry text section, irqEntry the text of interrupt entry, thunks
	// the retpoline thunks.
	entry, irqEntry, thunks x86.Range
	// onlyText: the symbols have no data (KALLSYMS_ALL is off).
	onlyText bool
	// sections, when not nil, are the ranges that kallsyms covers in place of _stext to
	// _end: the sections of an object that is no kernel.
	sections []x86.Range
}

func (b *bounds) text(a x86.Addr) bool     { return a.In(b.stext, b.etext) }
func (b *bounds) initText(a x86.Addr) bool { return a.In(b.sinittext, b.einittext) }

// kallsyms reports whether kallsyms answers for the address (kallsyms.h,
// is_ksym_addr).
func (b *bounds) kallsyms(a x86.Addr) bool {
	switch {
	case b.sections != nil:
		return b.sectionEnd(a) != 0
	case b.onlyText:
		return b.text(a) || b.initText(a)
	default:
		return a.In(b.stext, b.end)
	}
}

func (b *bounds) sectionEnd(a x86.Addr) x86.Addr {
	for _, r := range b.sections {
		if r.Contains(a) {
			return r.End
		}
	}
	return 0
}

// symbolEnd returns a function that computes the end of the last symbol: in the
// kernel the end of init text, of everything, or of text (kallsyms.c,
// get_symbol_pos). In an object that is no kernel every symbol ends with its
// section.
func (b *bounds) symbolEnd(syms []Symbol) func(x86.Addr) x86.Addr {
	if b.sections != nil {
		return b.sectionEnd
	}
	var last x86.Addr
	if len(syms) > 0 {
		last = syms[len(syms)-1].Addr
	}
	return func(a x86.Addr) x86.Addr {
		switch {
		case a != last:
			return 0
		case b.initText(a):
			return b.einittext
		case b.onlyText:
			return b.etext
		default:
			return b.end
		}
	}
}

// findBounds reads the bounds from the symbols, else from the sections.
func (img *Image) findBounds(syms []Symbol) {
	at := addrsOf(syms, "_stext", "_text", "_etext", "_sinittext", "_einittext", "_end",
		"__entry_text_start", "__entry_text_end", infer.IRQEntryStart, infer.IRQEntryEnd, "__indirect_thunk_start", "__indirect_thunk_end")
	b := &img.bounds
	if img.kind != KindKernel {
		img.objectBounds()
		return
	}
	text := img.sectionRange(".text")
	b.stext = firstOf(at["_stext"], at["_text"], text.Start)
	b.etext = firstOf(at["_etext"], text.End)
	init := img.sectionRange(".init.text")
	b.sinittext = firstOf(at["_sinittext"], init.Start)
	b.einittext = firstOf(at["_einittext"], init.End)
	b.end = firstOf(at["_end"], img.lastAddr())
	b.onlyText = b.noData(syms)
	// Without KALLSYMS_ALL, kallsyms leaves out what has the address of _etext: a range that ends there has no end among
	// the symbols (scripts/kallsyms.c, symbol_valid).
	span := func(start, end string) x86.Range {
		r := x86.Range{Start: at[start], End: at[end]}
		if r.Start != 0 && r.End == 0 && b.onlyText {
			r.End = b.etext
		}
		return r
	}
	b.entry = span("__entry_text_start", "__entry_text_end")
	if b.entry.Start == 0 || b.entry.End == 0 {
		b.entry = img.sectionRange(".entry.text")
	}
	b.irqEntry = span(infer.IRQEntryStart, infer.IRQEntryEnd)
	b.thunks = span("__indirect_thunk_start", "__indirect_thunk_end")
	if b.thunks.Start == 0 || b.thunks.End == 0 {
		b.thunks = thunkSymbols(syms)
	}
}

// objectBounds sets the bounds of an object that is no kernel: its executable sections
// are text, init text too, because nothing has freed it.
func (img *Image) objectBounds() {
	b := &img.bounds
	b.sections = []x86.Range{}
	for _, s := range img.sections {
		r := s.Range()
		b.sections = append(b.sections, r)
		if !s.Exec {
			continue
		}
		if b.stext == 0 {
			b.stext = r.Start
		}
		b.etext = r.End
	}
}

// thunkSymbols is the span of the retpoline and return thunks by their names,
// for kernels without the symbols of the section's bounds (6.12).
func thunkSymbols(syms []Symbol) x86.Range {
	var r x86.Range
	for i := range syms {
		name := syms[i].Name
		if !strings.HasPrefix(name, "__x86_indirect_") && name != "__x86_return_thunk" {
			continue
		}
		if r.Start == 0 {
			r.Start = syms[i].Addr
		}
		r.End = syms[i].Addr
	}
	if r.End == 0 {
		return r
	}
	// The last one ends where the next symbol begins.
	for i := range syms {
		if syms[i].Addr > r.End {
			r.End = syms[i].Addr
			break
		}
	}
	return r
}

// noData reports whether no symbol is data, as without KALLSYMS_ALL: all lie in text or
// init text, whatever letter the linker script gave them (__init_begin is D there), or are bounds of tables, which
// kernels of some builds have among them.
func (b *bounds) noData(syms []Symbol) bool {
	for i := range syms {
		a := syms[i].Addr
		if isTableBound(syms[i].Name) {
			continue
		}
		if !strings.ContainsRune("TtWwA", rune(syms[i].Type)) && !b.text(a) && a != b.etext && !b.initText(a) && a != b.einittext {
			return false
		}
	}
	return len(syms) > 0
}

// isTableBound: the linker script makes the symbol, no variable.
func isTableBound(name string) bool {
	return strings.HasPrefix(name, "__start_") || strings.HasPrefix(name, "__stop_")
}

func addrsOf(syms []Symbol, names ...string) map[string]x86.Addr {
	found := make(map[string]x86.Addr, len(names))
	want := make(map[string]bool, len(names))
	for _, n := range names {
		want[n] = true
	}
	for i := range syms {
		// Every bound's name begins with an underscore; most names do not.
		if n := syms[i].Name; n[0] == '_' && want[n] {
			if _, ok := found[n]; !ok {
				found[n] = syms[i].Addr
			}
		}
	}
	return found
}

func firstOf(addrs ...x86.Addr) x86.Addr {
	for _, a := range addrs {
		if a != 0 {
			return a
		}
	}
	return 0
}

func (img *Image) sectionRange(name string) x86.Range {
	if s := img.section(name); s != nil {
		return s.Range()
	}
	return x86.Range{}
}

// lastAddr is the end of the image's last section.
func (img *Image) lastAddr() x86.Addr {
	if len(img.sections) == 0 {
		return 0
	}
	return img.sections[len(img.sections)-1].Range().End
}
