package kimage

import (
	"kprobelab/kimage/internal/opened"
	"kprobelab/kimage/internal/patch"
	"kprobelab/x86"
)

// alternative is one struct alt_instr: text, what replaces it, and the CPU
// feature that decides.
type alternative struct {
	addr, repl       x86.Addr
	feature          feature
	addrLen, replLen int
	// not: replaced if the processor lacks the feature.
	not bool
	// call: the text is a call through memory that becomes a direct one.
	call bool
}

// altLayout tells the three layouts of struct alt_instr apart by size: 13
// bytes (4.0 to 5.12; with the padding's length), 12 (5.13 to 6.2, and 5.10.y),
// 14 (6.3 and later; with flags).
type altLayout int

// alternatives reads the owner's table, in its order, which is the order of
// application.
func (o tableOwner) alternatives() ([]alternative, altLayout) {
	at, data := o.table(altInstructions)
	fits := func(at x86.Addr, b []byte) bool { return o.img.usable(parseAlternative(at, b)) }
	l := o.img.pickLayout(at, data, []layout{{size: 12, fits: fits}, {size: 14, fits: fits}, {size: 13, fits: fits}})
	var list []alternative
	for off := 0; off+l.size <= len(data); off += l.size {
		a := parseAlternative(at.Add(int64(off)), data[off:off+l.size])
		if !o.img.usable(a) {
			o.img.ignore(altInstructions.section, a.addr)
			continue
		}
		list = append(list, a)
	}
	return list, altLayout(l.size)
}

// usable reports whether the alternative's two pieces of text exist and fit.
func (img *Image) usable(a alternative) bool {
	return a.addrLen > 0 && a.replLen <= a.addrLen && img.inExec(a.addr) && img.bytes(a.addr, a.addrLen) != nil &&
		(a.replLen == 0 || img.bytes(a.repl, a.replLen) != nil)
}

func parseAlternative(at x86.Addr, b []byte) alternative {
	a := alternative{addr: opened.Rel32(at, b), repl: opened.Rel32(at+4, b[4:])}
	number, lengths := le.Uint16(b[8:]), b[10:]
	if len(b) == 14 {
		flags := le.Uint16(b[10:])
		a.not, a.call = flags&1 != 0, flags&2 != 0
		lengths = b[12:]
	} else {
		a.not = number&0x8000 != 0
		number &= 0x7fff
	}
	a.feature = feature(number)
	a.addrLen, a.replLen = int(lengths[0]), int(lengths[1])
	return a
}

// readAlternativeSites makes the sites of the alternatives, one for each
// place, as long as its longest alternative.
func (img *Image) readAlternativeSites(o tableOwner) {
	list, _ := o.alternatives()
	longest := make(map[x86.Addr]int, len(list))
	for _, a := range list {
		longest[a.addr] = max(longest[a.addr], a.addrLen)
	}
	for addr, n := range longest {
		img.tables.addSite(SiteAlternative, addr, n)
	}
}

// applyAlternatives writes the owner's alternatives.
func (p *bootPatcher) applyAlternatives(o tableOwner) {
	list, _ := o.alternatives()
	sites := make([]patch.Alternative, len(list))
	for i, a := range list {
		sites[i] = patch.Alternative{Addr: a.addr, Repl: a.repl, Len: a.addrLen, ReplLen: a.replLen, Call: a.call, Chosen: p.feats.has[a.feature] != a.not}
	}
	p.patcher().Alternatives(sites)
}
