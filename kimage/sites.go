package kimage

import (
	"cmp"
	"encoding/binary"
	"slices"
	"sort"

	"kprobelab/kimage/internal/opened"
	"kprobelab/x86"
)

// JumpLabel is one entry of the jump table: a static branch.
type JumpLabel struct {
	// Addr is the branch site, Target the branch's target when it is taken.
	Addr, Target x86.Addr
	// Key is the address of the struct static_key.
	Key x86.Addr
	// Len is the site's length in bytes, 2 or 5.
	Len int
	// Branch is the entry's type bit: static_branch_likely, roughly.
	Branch bool
}

// StaticCall is one entry of the static-call site table.
type StaticCall struct {
	// Addr is the call or tail-call instruction.
	Addr x86.Addr
	// Key is the address of the struct static_call_key.
	Key x86.Addr
	// Tail is true for a jump in place of a call.
	Tail bool
}

// Sites lists the patch sites of a kind by ascending address; nil for a kind
// that does not exist. The caller must not modify it.
func (img *Image) Sites(kind SiteKind) []Site {
	if kind < 0 || kind >= NumSiteKinds {
		return nil
	}
	return img.tables.sites[kind]
}

// JumpLabels lists the static branches by ascending address. The caller must
// not modify it.
func (img *Image) JumpLabels() []JumpLabel { return img.tables.jumpLabels }

// StaticCalls lists the static-call sites by ascending address. The caller
// must not modify it.
func (img *Image) StaticCalls() []StaticCall { return img.tables.staticCalls }

// SiteAt implements View.
func (img *Image) SiteAt(kind SiteKind, addr x86.Addr) (Site, bool) {
	return img.SiteIn(kind, x86.Range{Start: addr, End: addr + 1})
}

// SiteIn implements View.
func (img *Image) SiteIn(kind SiteKind, r x86.Range) (Site, bool) {
	if kind < 0 || kind >= NumSiteKinds {
		return Site{}, false
	}
	list, back := img.tables.sites[kind], x86.Addr(img.tables.longest[kind])
	from := r.Start - min(back, r.Start)
	i := sort.Search(len(list), func(i int) bool { return list[i].Addr >= from })
	for ; i < len(list) && list[i].Addr < r.End; i++ {
		if list[i].Addr.Add(int64(list[i].Len)) > r.Start {
			return list[i], true
		}
	}
	return Site{}, false
}

// addSite adds a site; length 0 means that the table's entry is unusable.
func (t *kernelTables) addSite(kind SiteKind, addr x86.Addr, length int) {
	t.sites[kind] = append(t.sites[kind], Site{Addr: addr, Len: length})
	t.longest[kind] = max(t.longest[kind], length)
}

// sort puts every slice in order of address. It is stable, so that entries at
// one address stay in the table's order.
func (t *kernelTables) sort() {
	for k := range t.sites {
		slices.SortStableFunc(t.sites[k], func(a, b Site) int { return cmp.Compare(a.Addr, b.Addr) })
	}
	slices.SortStableFunc(t.exceptions, func(a, b ExceptionEntry) int { return cmp.Compare(a.Addr, b.Addr) })
	slices.SortStableFunc(t.bugs, func(a, b Bug) int { return cmp.Compare(a.Addr, b.Addr) })
	slices.SortStableFunc(t.jumpLabels, func(a, b JumpLabel) int { return cmp.Compare(a.Addr, b.Addr) })
	slices.SortStableFunc(t.staticCalls, func(a, b StaticCall) int { return cmp.Compare(a.Addr, b.Addr) })
}

// readJumpLabels reads struct jump_entry: two relative pointers of 4 bytes and
// one of 8 whose lowest bits are flags (4.19 and later), or three absolute
// ones (before).
func (img *Image) readJumpLabels(o tableOwner) {
	at, data := o.table(jumpTable)
	l := img.pickLayout(at, data, []layout{
		{size: 16, addr: opened.Rel32},
		{size: 24, addr: func(_ x86.Addr, b []byte) x86.Addr { return opened.Abs64(b) }},
	})
	for off := 0; off+l.size <= len(data); off += l.size {
		e, here := data[off:], at.Add(int64(off))
		j := JumpLabel{Addr: l.addr(here, e)}
		var key x86.Addr
		if l.size == 16 {
			j.Target = opened.Rel32(here+4, e[4:])
			key = here + 8 + opened.Abs64(e[8:])
		} else {
			j.Target, key = opened.Abs64(e[8:]), opened.Abs64(e[16:])
		}
		j.Key, j.Branch = key&^3, key&1 != 0
		if j.Len = img.jumpLabelLen(j.Addr); j.Len == 0 {
			img.ignore(jumpTable.section, j.Addr)
			continue
		}
		img.tables.jumpLabels = append(img.tables.jumpLabels, j)
		img.tables.addSite(SiteJumpLabel, j.Addr, j.Len)
	}
}

// jumpLabelLen tells a 2-byte site from a 5-byte one by its bytes; it returns 0 if the
// address is not in text.
func (img *Image) jumpLabelLen(addr x86.Addr) int {
	b := img.bytes(addr, 5)
	if b == nil || !img.inExec(addr) {
		return 0
	}
	if b[0] == 0xeb || (b[0] == 0x66 && b[1] == 0x90) {
		return 2
	}
	return 5
}

// readStaticCalls reads struct static_call_site: two relative pointers, the
// second's lowest bits are flags (bit 0 tail call, bit 1 init).
func (img *Image) readStaticCalls(o tableOwner) {
	at, data := o.table(staticCallSites)
	keys := img.trampolineKeys()
	for off := 0; off+8 <= len(data); off += 8 {
		here := at.Add(int64(off))
		addr, key := opened.Rel32(here, data[off:]), opened.Rel32(here+4, data[off+4:])
		if !img.inExec(addr) || img.bytes(addr, 5) == nil {
			img.ignore(staticCallSites.section, addr)
			continue
		}
		c := StaticCall{Addr: addr, Key: key &^ 3, Tail: key&1 != 0}
		if k, ok := keys[c.Key]; ok {
			c.Key = k
		}
		if img.bounds.onlyText && o.module == "" {
			img.tables.keys[img.calledBy(addr)] = c.Key
		}
		img.tables.staticCalls = append(img.tables.staticCalls, c)
		img.tables.addSite(SiteStaticCall, addr, 5)
	}
}

// calledBy is the trampoline that a static call's site calls or jumps to, perhaps conditionally (jcc rel32).
func (img *Image) calledBy(site x86.Addr) x86.Addr {
	if b := img.bytes(site, 6); b != nil && b[0] == 0x0f && b[1]>>4 == 8 {
		return opened.Rel32(site+6, b[2:])
	}
	return opened.Rel32(site+5, img.bytes(site+1, 4))
}

// trampolineKeys maps trampolines to their keys: a module's site names the
// trampoline where only that is exported.
func (img *Image) trampolineKeys() map[x86.Addr]x86.Addr {
	keys := make(map[x86.Addr]x86.Addr)
	at, data := tableOwner{img: img}.table(staticCallKeys)
	for off := 0; off+8 <= len(data); off += 8 {
		here := at.Add(int64(off))
		keys[opened.Rel32(here, data[off:])] = opened.Rel32(here+4, data[off+4:])
	}
	return keys
}

// readFtraceSites reads the absolute addresses of the fentry calls. An entry is 0 if
// the linker dropped its function.
func (img *Image) readFtraceSites(o tableOwner) {
	for _, name := range []*tableName{mcountLocations, patchableEntries} {
		_, data := o.table(name)
		for off := 0; off+8 <= len(data); off += 8 {
			addr := opened.Abs64(data[off:])
			switch {
			case addr == 0:
			case img.inExec(addr) && img.bytes(addr, 5) != nil:
				img.tables.addSite(SiteFtrace, addr, 5)
			default:
				img.ignore(name.section, addr)
			}
		}
		if len(data) > 0 {
			return
		}
	}
}

// readSMPLocks reads the places of lock prefixes. The linker fills the
// section up to a page, and the filling points at itself.
func (img *Image) readSMPLocks(o tableOwner) {
	at, data := o.table(smpLocks)
	for off := 0; off+4 <= len(data); off += 4 {
		addr := opened.Rel32(at.Add(int64(off)), data[off:])
		switch {
		case binary.LittleEndian.Uint32(data[off:]) == 0:
		case img.inExec(addr):
			img.tables.addSite(SiteSMPLock, addr, 1)
		default:
			img.ignore(smpLocks.section, addr)
		}
	}
}

// readThunkSites reads the calls and jumps to the return thunk and to the
// retpoline thunks, which are the compiler's, so their length shows in the text.
func (img *Image) readThunkSites(o tableOwner) {
	for _, t := range []struct {
		kind  SiteKind
		table *tableName
	}{
		{SiteReturn, returnSites},
		{SiteRetpoline, retpolineSites},
	} {
		at, data := o.table(t.table)
		for off := 0; off+4 <= len(data); off += 4 {
			addr := opened.Rel32(at.Add(int64(off)), data[off:])
			if n := img.branchLen(addr); n > 0 {
				img.tables.addSite(t.kind, addr, n)
			} else {
				img.ignore(t.table.section, addr)
			}
		}
	}
}

// branchLen is the length of the direct branch at addr: 5 for call and jmp, 6
// for jcc, one more with a CS prefix (retpolines of r8 to r15); 0 where addr
// is not in text.
func (img *Image) branchLen(addr x86.Addr) int {
	b := img.bytes(addr, 5)
	if b == nil || !img.inExec(addr) {
		return 0
	}
	n := 0
	for n < 3 && b[n] == 0x2e {
		n++
	}
	if b[n] == 0x0f {
		return n + 6
	}
	return n + 5
}
