package orc

import (
	"encoding/binary"

	"kprobelab/internal/bounded"
	"kprobelab/kimage/btf"
	"kprobelab/x86"
)

// register is the base to which an offset of an entry is added.
type register int

const (
	regUndefined register = iota
	regPrevSP
	regDX
	regDI
	regBP
	regSP
	regR10
	regR13
	regBPIndirect
	regSPIndirect
	regUnknown
)

// Numbers of registers in an entry (arch/x86/include/asm/orc_types.h): before, and in 7.3,
// where they are in another order. Which a kernel has, its entry for a null pointer says.
var (
	registersBefore = []register{regUndefined, regPrevSP, regDX, regDI, regBP, regSP, regR10, regR13, regBPIndirect, regSPIndirect}
	registersNow    = []register{regUndefined, regUnknown, regDX, regSP, regBP, regDI, regR10, regR13, regPrevSP, regSPIndirect, regBPIndirect}
)

// kind is the kind of a frame.
type kind int

const (
	kindUndefined kind = iota // nothing is known of the code
	kindEnd                   // no caller is there
	kindCall
	kindRegs    // a pt_regs is there
	kindPartial // the processor's five words of one are there
)

// Numbers of kinds in an entry: since 6.4 undefined code and the stack's end are kinds
// of their own; before, both had no base register, and the end a flag.
var (
	kindsNow    = []kind{kindUndefined, kindEnd, kindCall, kindRegs, kindPartial}
	kindsBefore = []kind{kindCall, kindRegs, kindPartial}
)

// entry describes the stack at an instruction.
type entry struct {
	spOffset, bpOffset int64
	spReg, bpReg       register
	kind               kind
	// signal: the next frame's address is that of an interrupted instruction, not the address after
	// a call.
	signal bool
}

// guess is the entry that the kernel assumes for code without entries: code with a frame pointer.
var guess = entry{spReg: regBP, spOffset: 16, bpReg: regPrevSP, bpOffset: -16, kind: kindCall}

// atNull is a call of a null pointer.
var atNull = entry{spReg: regSP, spOffset: 8, bpReg: regUndefined, kind: kindCall}

// bits is the position of a member of an entry.
type bits struct{ shift, width int }

func (b bits) of(w uint64) uint64 { return w >> b.shift & (1<<b.width - 1) }

// layout is the layout of an entry, by BTF or by the entries.
type layout struct {
	registers                []register
	size                     int
	spOffset, bpOffset       bits
	spReg, bpReg, kind       bits
	signal, end              bits
	hasSignal, hasEnd        bool
	moduleList, moduleOrcs   int64 // in struct module
	moduleIPs, moduleEntries int64
	modulesKnown             bool
}

// layoutOf reads struct orc_entry, and where a module has its tables.
func layoutOf(types *btf.Types) (l layout, ok bool) {
	t, ok := types.Struct("orc_entry")
	if !ok || t.Size() > 8 {
		return l, false
	}
	l.size = t.Size()
	member := func(name string, to *bits) bool {
		m, ok := t.Member(name)
		if !ok {
			return false
		}
		*to = bits{m.Offset, m.Bits}
		if m.Bits == 0 {
			to.width = m.Type.Size() * 8
		}
		return to.shift >= 0 && to.width > 0 && to.shift+to.width <= 8*l.size
	}
	ok = member("sp_offset", &l.spOffset) && member("bp_offset", &l.bpOffset) &&
		member("sp_reg", &l.spReg) && member("bp_reg", &l.bpReg) && member("type", &l.kind)
	l.hasSignal, l.hasEnd = member("signal", &l.signal), member("end", &l.end)
	l.findModules(types)
	return l, ok
}

func (l *layout) findModules(types *btf.Types) {
	t, ok := types.Struct("module")
	if !ok {
		return
	}
	list, ok1 := t.Member("list")
	arch, ok2 := t.Member("arch")
	if !ok1 || !ok2 {
		return
	}
	l.moduleList, l.modulesKnown = int64(list.Offset/8), true
	for name, to := range map[string]*int64{"num_orcs": &l.moduleOrcs, "orc_unwind_ip": &l.moduleIPs, "orc_unwind": &l.moduleEntries} {
		m, ok := arch.Type.Member(name)
		*to = int64(arch.Offset+m.Offset) / 8
		l.modulesKnown = l.modulesKnown && ok
	}
}

func signed(v uint64, width int) int64 { return int64(v<<(64-width)) >> (64 - width) }

func (l *layout) register(n uint64) register {
	if n >= uint64(len(l.registers)) {
		return regUnknown
	}
	return l.registers[n]
}

func (l *layout) decode(w uint64) entry {
	e := entry{
		spOffset: signed(l.spOffset.of(w), l.spOffset.width), bpOffset: signed(l.bpOffset.of(w), l.bpOffset.width),
		spReg: l.register(l.spReg.of(w)), bpReg: l.register(l.bpReg.of(w)),
	}
	kinds := kindsNow
	if l.hasEnd {
		kinds = kindsBefore
	}
	if n := int(l.kind.of(w)); n < len(kinds) {
		e.kind = kinds[n]
	}
	if l.hasEnd && e.spReg == regUndefined {
		e.kind = kindUndefined
		if l.end.of(w) != 0 {
			e.kind = kindEnd
		}
	}
	e.signal = l.hasSignal && l.signal.of(w) != 0 || !l.hasSignal && (e.kind == kindRegs || e.kind == kindPartial)
	return e
}

// table is a sorted list of addresses, each as its distance from its own place, with the entry that
// holds from that address on.
type table struct {
	ips, entries x86.Addr
	n            int
}

// ip is the address of the entry n.
func (u *Unwinder) ip(t table, n int) (uint64, bool) {
	at := t.ips.Add(int64(n) * 4)
	var b [4]byte
	if u.read(at, b[:]) != nil {
		return 0, false
	}
	return uint64(at.Add(int64(int32(binary.LittleEndian.Uint32(b[:]))))), true
}

// index returns the index of the last entry whose address is not after ip.
func (u *Unwinder) index(t table, ip uint64) (n int, ok bool) {
	first, last, found := 0, t.n-1, -1
	for first <= last {
		mid := (first + last) / 2
		at, ok := u.ip(t, mid)
		if !ok {
			return 0, false
		}
		if at <= ip {
			found, first = mid, mid+1
		} else {
			last = mid - 1
		}
	}
	return found, found >= 0
}

// in is the last entry whose address is not after ip.
func (u *Unwinder) in(t table, ip uint64) (e entry, start uint64, ok bool) {
	n, ok := u.index(t, ip)
	if !ok {
		return e, 0, false
	}
	start, ok = u.ip(t, n)
	var b [8]byte
	if !ok || u.read(t.entries.Add(int64(n*u.layout.size)), b[:u.layout.size]) != nil {
		return e, 0, false
	}
	return u.layout.decode(binary.LittleEndian.Uint64(b[:])), start, true
}

// find is the entry for an address.
func (u *Unwinder) find(ip uint64) (entry, bool) {
	if ip == 0 {
		return atNull, true
	}
	if u.Kernel(ip) {
		e, _, ok := u.in(u.kernel, ip)
		return e, ok
	}
	// The module whose text holds it is the one whose nearest entry before it is nearest.
	var best entry
	var from uint64
	u.eachModule(func(t table) {
		if e, start, ok := u.in(t, ip); ok && start >= from && ip-start < maxModuleText {
			best, from = e, start
		}
	})
	return best, from != 0
}

// maxModuleText bounds how far the last entry of a module reaches.
const maxModuleText = 16 << 20

// eachModule calls fn with the table of each module that is loaded.
func (u *Unwinder) eachModule(fn func(table)) {
	l := &u.layout
	if u.modules == 0 || !l.modulesKnown {
		return
	}
	at, ok := u.word(uint64(u.modules))
	for range bounded.OrcModules {
		if !ok || at == uint64(u.modules) || at == 0 {
			return
		}
		m := x86.Addr(at).Add(-l.moduleList)
		var b [4]byte
		ips, ok1 := u.word(uint64(m.Add(l.moduleIPs)))
		entries, ok2 := u.word(uint64(m.Add(l.moduleEntries)))
		if ok1 && ok2 && ips != 0 && entries != 0 && u.read(m.Add(l.moduleOrcs), b[:]) == nil {
			fn(table{x86.Addr(ips), x86.Addr(entries), min(int(binary.LittleEndian.Uint32(b[:])), bounded.OrcEntries)})
		}
		at, ok = u.word(at)
	}
}

// word reads a word of memory.
func (u *Unwinder) word(at uint64) (uint64, bool) {
	var b [8]byte
	err := u.read(x86.Addr(at), b[:])
	return binary.LittleEndian.Uint64(b[:]), err == nil
}
