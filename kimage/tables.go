package kimage

import (
	"slices"

	"kprobelab/x86"
)

// kernelTables holds the kernel's tables about its text: the places that it
// patches, that may fault, that must not be probed. The slices from which a View
// answers are sorted by address; a module's entries are merged in.
type kernelTables struct {
	// sites are the patch sites of each kind, and longest the length of the
	// longest of a kind, which bounds the search for one that covers an address.
	sites   [NumSiteKinds][]Site
	longest [NumSiteKinds]int

	exceptions  []ExceptionEntry
	bugs        []Bug
	cfiTraps    map[x86.Addr]bool
	jumpLabels  []JumpLabel
	staticCalls []StaticCall
	// keys are the static calls' keys by trampoline, if they have no symbols.
	keys map[x86.Addr]x86.Addr
	// allKeys are the keys of all static branches, nil until the first use.
	allKeys map[x86.Addr]bool

	blacklist blacklist
	btf       btfCache
	programs  programsCache

	// ignored counts the entries of each table that were left out, because they
	// point outside the image's text.
	ignored map[string]int
}

// tableOwner is the kernel (module "") or a module. A module's tables are sections;
// no symbols mark their ends.
type tableOwner struct {
	img    *Image
	module string
}

// table returns the address and the bytes of a table: the bytes between the two symbols
// if the image has both, else the section of that name, else the table that was found
// without a name. An absent table is empty.
func (o tableOwner) table(t *tableName) (x86.Addr, []byte) {
	r := o.named(t)
	if r.End == 0 && o.module == "" {
		r = o.img.unnamed[t]
	}
	return r.Start, o.img.bytes(r.Start, int(r.End.Sub(r.Start)))
}

// named returns the address range of a table by its symbols or its section, or the zero
// Range if the owner has neither.
func (o tableOwner) named(t *tableName) x86.Range {
	if o.module == "" {
		a, ok1 := o.img.symbolAddr(t.start)
		b, ok2 := o.img.symbolAddr(t.stop)
		if ok1 && ok2 && a < b && uint64(b-a) < 1<<31 && o.img.bytes(a, int(b-a)) != nil {
			return x86.Range{Start: a, End: b}
		}
	}
	if s := o.section(t.section); s != nil {
		return x86.Range{Start: s.Addr, End: s.Addr.Add(int64(len(s.Data)))}
	}
	return x86.Range{}
}

// section returns the owner's first allocated section of that name, or nil.
func (o tableOwner) section(name string) *Section {
	if o.module != "" {
		for _, s := range o.img.owned[o.module] {
			if s.Name == name {
				return s
			}
		}
		return nil
	}
	for _, s := range o.img.sections {
		if s.Name == name && s.Module == "" {
			return s
		}
	}
	return nil
}

// loadTables reads every table of the image itself and gathers the blacklist.
func (img *Image) loadTables() error {
	img.tables.ignored = make(map[string]int)
	img.tables.keys = make(map[x86.Addr]x86.Addr)
	img.findUnnamed()
	o := tableOwner{img: img}
	img.readTables(o)
	img.tables.sort()
	img.gatherBlacklist(o)
	return nil
}

// readTables reads the tables of one owner into the image's.
func (img *Image) readTables(o tableOwner) {
	img.readExceptions(o)
	img.readBugs(o)
	img.readCFITraps(o)
	img.readJumpLabels(o)
	img.readStaticCalls(o)
	img.readFtraceSites(o)
	img.readSMPLocks(o)
	img.readAlternativeSites(o)
	img.readParavirtSites(o)
	img.readThunkSites(o)
}

// inExec reports whether addr lies in an executable section.
func (img *Image) inExec(addr x86.Addr) bool {
	s := img.sectionAt(addr)
	return s != nil && s.Exec
}

// ignore counts an entry of a table whose address lies nowhere. In a kernel that runs,
// entries about what boot has freed are still there; they mean nothing. Who looks at a
// table before the tables are read counts nothing.
func (img *Image) ignore(table string, addr x86.Addr) {
	if img.tables.ignored != nil && !slices.ContainsFunc(img.freed, func(r x86.Range) bool { return r.Contains(addr) }) {
		img.tables.ignored[table]++
	}
}

// IgnoredEntries counts the entries of the image's tables that were left out
// because they point outside its text, by table. In a sound image all are zero.
func (img *Image) IgnoredEntries() map[string]int { return img.tables.ignored }

// layout is one way that releases have laid a table's entries out.
type layout struct {
	size int
	// addr is the text address that the entry at this place names.
	addr func(at x86.Addr, b []byte) x86.Addr
	// fits, when not nil, decides whether the entry makes sense, in place of
	// its address lying in text.
	fits func(at x86.Addr, b []byte) bool
}

// pickLayout returns the layout by which most of the table's entries name text,
// and by which the table has a whole number of entries; of equals the first.
// Releases differ in the size of an entry, and nothing in an image says which
// it is.
func (img *Image) pickLayout(at x86.Addr, data []byte, layouts []layout) layout {
	best, bestHits := layouts[0], -1.0
	for _, l := range layouts {
		n := len(data) / l.size
		if n == 0 {
			continue
		}
		hits, tried := 0, 0
		// An odd stride: entries of twice the size would all fit an even one.
		for i := 0; i < n; i += (n/256 + 1) | 1 {
			off := i * l.size
			tried++
			if l.fits == nil && img.inExec(l.addr(at.Add(int64(off)), data[off:])) ||
				l.fits != nil && l.fits(at.Add(int64(off)), data[off:off+l.size]) {
				hits++
			}
		}
		share := float64(hits) / float64(tried)
		if len(data)%l.size != 0 {
			share /= 2
		}
		if share > bestHits {
			best, bestHits = l, share
		}
	}
	return best
}
