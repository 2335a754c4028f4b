package orc

import (
	"encoding/binary"

	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// An entry has had six bytes since 4.14: the offsets, the registers, and a byte of flags, which has changed
// (arch/x86/include/asm/orc_types.h).
var (
	// entryNow is since 6.4.
	entryNow = entryWith(bits{40, 3}, bits{43, 1}, bits{})
	// entrySignal is 6.3's.
	entrySignal = entryWith(bits{40, 2}, bits{42, 1}, bits{43, 1})
	// entryEnd is to 6.2. The first versions had no flag of the stack's end; there its bit is never
	// set.
	entryEnd = entryWith(bits{40, 2}, bits{}, bits{42, 1})
)

func entryWith(kind, signal, end bits) layout {
	return layout{
		size: 6, spOffset: bits{0, 16}, bpOffset: bits{16, 16}, spReg: bits{32, 4}, bpReg: bits{36, 4},
		kind: kind, signal: signal, end: end, hasSignal: signal.width > 0, hasEnd: end.width > 0,
	}
}

// shownLayout finds the layout of entries by the entries themselves, for a kernel without type information. The entry for a null pointer tells
// a call's number; before 6.4 only entries without a base register end a stack, and only others interrupt.
func shownLayout(at func(name string) x86.Addr, read func(at x86.Addr, b []byte) error) (l layout, ok bool) {
	start, n := at("__start_orc_unwind"), int(at("__stop_orc_unwind_ip")-at("__start_orc_unwind_ip"))/4
	size := entryNow.size
	if start == 0 || n <= 0 || n > bounded.OrcEntries || int(at("__stop_orc_unwind")-start) != n*size {
		return l, false
	}
	null, ok := nullEntry(at, read, size)
	all := make([]byte, n*size)
	if !ok || read(start, all) != nil {
		return l, false
	}
	if now := entryNow; now.decodesNull(null) {
		return now, true
	}
	var based, free uint64 // the flags that are set in entries with a base register and without one
	for ; len(all) > 0; all = all[size:] {
		w := uint64(binary.LittleEndian.Uint32(all)) | uint64(binary.LittleEndian.Uint16(all[4:]))<<32
		if entryEnd.spReg.of(w) == uint64(regUndefined) {
			free |= w
		} else {
			based |= w
		}
	}
	for _, l := range []layout{entryEnd, entrySignal} {
		if l.end.of(based) == 0 && l.signal.of(free) == 0 && (l.hasSignal || entrySignal.end.of(based|free) == 0) {
			return l, true
		}
	}
	return l, false
}

// decodesNull reports whether a word is the entry for a null pointer, with either numbers of registers; it notes which.
func (l *layout) decodesNull(w uint64) bool {
	for _, l.registers = range [][]register{registersBefore, registersNow} {
		if l.decode(w) == atNull {
			return true
		}
	}
	return false
}

// nullEntry returns the entry for a call of a null pointer. If it has no name (to 4.19 there is
// none, and without KALLSYMS_ALL symbols of data are missing) it is the entry of a function's first
// instruction: there, too, only the return address is on the stack.
func nullEntry(at func(name string) x86.Addr, read func(at x86.Addr, b []byte) error, size int) (uint64, bool) {
	from := at("null_orc_entry")
	if from == 0 {
		u := &Unwinder{read: read, layout: layout{size: size}}
		function, ips := at("schedule"), at("__start_orc_unwind_ip")
		n, ok := u.index(table{ips: ips, n: int(at("__stop_orc_unwind_ip")-ips) / 4}, uint64(function))
		if function == 0 || !ok {
			return 0, false
		}
		from = at("__start_orc_unwind").Add(int64(n * size))
	}
	var b [8]byte
	err := read(from, b[:size])
	return binary.LittleEndian.Uint64(b[:]), err == nil
}
