package kimage

import (
	"cmp"
	"slices"
	"sort"

	"kprobelab/kimage/internal/infer"
	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// BlacklistEntry is one element of the kprobes blacklist.
type BlacklistEntry struct {
	x86.Range
	// Symbol is the name at the start of the range.
	Symbol string
	// Module is the owning module's name, "" for the kernel image.
	Module string
	// By says which mark in the kernel's source put it there.
	By BlacklistedBy
}

// BlacklistedBy is the mark in the kernel's source that puts code on the blacklist.
type BlacklistedBy int

// The marks.
const (
	// ByName: NOKPROBE_SYMBOL names the function.
	ByName BlacklistedBy = iota
	// ByKprobesText: the function is marked __kprobes.
	ByKprobesText
	// ByNoinstr: the function is marked noinstr (5.8 and later).
	ByNoinstr
	// ByIRQEntry: interrupt entry (to 5.7).
	ByIRQEntry
	// ByEntryText: entry from user mode, of an interrupt or an exception.
	ByEntryText
)

// String is the way in words that follow "blacklisted:".
func (b BlacklistedBy) String() string {
	return [...]string{
		"named by NOKPROBE_SYMBOL",
		"marked __kprobes (.kprobes.text)",
		"marked noinstr (.noinstr.text)",
		"interrupt entry (.irqentry.text)",
		"entry text (.entry.text)",
	}[b]
}

// blacklist is the list in the order of insertion, and an index into it.
type blacklist struct {
	list []BlacklistEntry
	// byStart are the ranges by start; reach[i] is the highest end of
	// byStart[:i+1], for elements overlap.
	byStart []x86.Range
	reach   []x86.Addr
	// kprobesText is .kprobes.text, which is tested by its bounds as well.
	kprobesText x86.Range
}

// Blacklist lists the blacklist's elements as debugfs does: in the order in
// which boot, and then each module, added them (docs/spec 1.9). The caller must
// not modify it.
func (img *Image) Blacklist() []BlacklistEntry { return img.tables.blacklist.list }

// Blacklisted implements View. The bounds of .kprobes.text count as one element. The caller,
// who knows the symbol, applies the rule for compiler-made clones (names with a dot).
func (img *Image) Blacklisted(addr x86.Addr) (x86.Range, bool) {
	b := &img.tables.blacklist
	i := sort.Search(len(b.byStart), func(i int) bool { return b.byStart[i].Start > addr }) - 1
	for ; i >= 0 && b.reach[i] > addr; i-- {
		if b.byStart[i].Contains(addr) {
			return b.byStart[i], true
		}
	}
	if b.kprobesText.Contains(addr) {
		return b.kprobesText, true
	}
	return x86.Range{}, false
}

// BlacklistedAs returns the marks by which the code at an address is on the
// blacklist; nil if it is not on it.
func (img *Image) BlacklistedAs(addr x86.Addr) (by []BlacklistedBy) {
	b := &img.tables.blacklist
	for i := range b.list {
		if e := &b.list[i]; e.Contains(addr) && !slices.Contains(by, e.By) {
			by = append(by, e.By)
		}
	}
	if by == nil && b.kprobesText.Contains(addr) {
		by = append(by, ByKprobesText)
	}
	return by
}

// gatherBlacklist adds the owner's elements in the kernel's order: functions
// named in _kprobe_blacklist, .kprobes.text, .noinstr.text, to 5.7 the text of
// interrupt entry, entry text.
func (img *Image) gatherBlacklist(o tableOwner) {
	b := &img.tables.blacklist
	_, data := o.table(kprobeBlacklist)
	for off := 0; off+8 <= len(data); off += 8 {
		img.blacklistSymbol(opened.Abs64(data[off:]), o.module, ByName)
	}
	type area struct {
		section, start, stop string
		by                   BlacklistedBy
	}
	areas := []area{
		{".kprobes.text", "__kprobes_text_start", "__kprobes_text_end", ByKprobesText},
		{".noinstr.text", "__noinstr_text_start", "__noinstr_text_end", ByNoinstr},
		{".entry.text", "__entry_text_start", "__entry_text_end", ByEntryText},
		// System calls come this way where page tables are separated (4.15 to 4.19).
		{".entry_trampoline", "__entry_trampoline_start", "__entry_trampoline_end", ByEntryText},
	}
	if o.module != "" {
		areas = areas[:2]
	}
	if o.module == "" && img.profile.Check.IRQEntryText {
		areas = slices.Insert(areas, 2, area{"", infer.IRQEntryStart, infer.IRQEntryEnd, ByIRQEntry})
	}
	for i, a := range areas {
		r := o.area(a.section, a.start, a.stop)
		if i == 0 && o.module == "" {
			b.kprobesText = r
		}
		img.blacklistArea(r, o.module, a.by)
	}
	b.index()
}

// area is the range between the two symbols, or the section's.
func (o tableOwner) area(section, start, stop string) x86.Range {
	if o.module == "" {
		a, ok1 := o.img.symbolAddr(start)
		b, ok2 := o.img.symbolAddr(stop)
		if ok1 && ok2 {
			return x86.Range{Start: a, End: max(a, b)}
		}
	}
	if s := o.section(section); s != nil {
		return s.Range()
	}
	return x86.Range{}
}

// blacklistSymbol adds [addr, addr + its symbol's size) and returns the size;
// it fails where addr is not in text or has no symbol.
func (img *Image) blacklistSymbol(addr x86.Addr, module string, by BlacklistedBy) (uint64, bool) {
	if !img.InText(addr) {
		return 0, false
	}
	s, ok := img.SymbolAt(addr)
	if !ok {
		return 0, false
	}
	img.tables.blacklist.list = append(img.tables.blacklist.list, BlacklistEntry{
		Range:  x86.Range{Start: addr, End: addr.Add(int64(s.Size))},
		Symbol: s.Name,
		Module: module,
		By:     by,
	})
	return s.Size, true
}

// blacklistArea adds an area symbol by symbol, and stops at the first address
// without one.
func (img *Image) blacklistArea(r x86.Range, module string, by BlacklistedBy) {
	for addr := r.Start; addr < r.End; {
		size, ok := img.blacklistSymbol(addr, module, by)
		if !ok {
			return
		}
		addr += x86.Addr(max(size, 1))
	}
}

// index makes byStart and reach from the list.
func (b *blacklist) index() {
	b.byStart, b.reach = b.byStart[:0], b.reach[:0]
	for _, e := range b.list {
		if e.Start < e.End {
			b.byStart = append(b.byStart, e.Range)
		}
	}
	slices.SortStableFunc(b.byStart, func(x, y x86.Range) int { return cmp.Compare(x.Start, y.Start) })
	var highest x86.Addr
	for _, r := range b.byStart {
		highest = max(highest, r.End)
		b.reach = append(b.reach, highest)
	}
}
