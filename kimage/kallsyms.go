package kimage

import (
	"bytes"
	"errors"

	"kprobelab/internal/bounded"
	"kprobelab/internal/printable"
	"kprobelab/x86"
)

// The kernel carries its symbols in compressed tables in its read-only data. A
// distribution's image has no others. No header says where they are; they are
// found by what they must look like. In address order:
//
//	to 6.3:    offsets  relative_base  num_syms  names  markers  [seqs_of_names]  token_table  token_index
//	from 6.4:  num_syms  names  markers  token_table  token_index  offsets  relative_base  seqs_of_names
//	from 7.0:  num_syms  names  markers  token_table  token_index  offsets  seqs_of_names
//
// (scripts/kallsyms.c; to 6.19 every table starts at a multiple of 8; stable
// releases of 6.1 have seqs_of_names too, and kernels without a relative base
// have 8-byte addresses in place of offsets. From 7.0 on every table starts at a
// multiple of 4, num_syms has 4 bytes, and an offset counts from its own place.)
//
// token_table has 256 strings: each byte of a compressed name stands for one.
// Digits and letters stand for themselves, so "0\x001\x002\x00…9\x00" is in it,
// and the search begins with that. token_index, its 256 offsets, proves the
// place.

// errNoKallsyms says that no intact tables are in the data.
var errNoKallsyms = errors.New("no kallsyms tables")

// kallsymsTables are the tables found in one piece of data.
type kallsymsTables struct {
	data []byte
	// at is the address of data.
	at     x86.Addr
	tokens [256][]byte
	// names starts the compressed names, num is how many.
	names, num int
	// align is the alignment of tables: 8, or 4 from 7.0 on.
	align int
}

var tokenAnchor = []byte("0\x001\x002\x003\x004\x005\x006\x007\x008\x009\x00")

// Limits: a kernel has some hundred thousand symbols.
const (
	minKallsyms = 16
)

// findKallsyms searches the tables in data, which is at the address at, and decodes
// their symbols. inText reports whether an address is in the image's text.
func findKallsyms(data []byte, at x86.Addr, inText func(x86.Addr) bool) ([]Symbol, error) {
	budget := bounded.KallsymsSearch
	for from := 0; ; {
		i := bytes.Index(data[from:], tokenAnchor)
		if i < 0 {
			return nil, errNoKallsyms
		}
		anchor := from + i
		if k, table, index := findTokens(data, anchor); k != nil {
			k.at = at
			if syms, ok := k.find(table, index, inText, &budget); ok {
				return syms, nil
			}
		}
		from = anchor + len(tokenAnchor)
	}
}

// findTokens finds the token table whose string '0' stands at anchor, and
// returns the tables with tokens set, and where token_table and token_index are.
func findTokens(data []byte, anchor int) (k *kallsymsTables, table, index int) {
	// 48 strings precede it, each at most some dozen bytes; the table may
	// start at any multiple of 4, so all of them are tried.
	const farthest = 48 * 128
	for start := (anchor - 47) &^ 3; start >= 0 && start > anchor-farthest; start -= 4 {
		k := &kallsymsTables{data: data}
		at := start
		var offs [256]uint16
		ok := true
		for t := range k.tokens {
			if t == '0' && at != anchor || at-start > 0xffff {
				ok = false
				break
			}
			n := bytes.IndexByte(data[at:min(len(data), at+256)], 0)
			if n < 0 {
				ok = false
				break
			}
			offs[t] = uint16(at - start)
			k.tokens[t] = data[at : at+n]
			at += n + 1
		}
		if !ok {
			continue
		}
		for _, k.align = range []int{8, 4} {
			if index := alignUp(at, k.align); start%k.align == 0 && tokenIndexIs(data, index, &offs) {
				return k, start, index
			}
		}
	}
	return nil, 0, 0
}

func tokenIndexIs(data []byte, at int, offs *[256]uint16) bool {
	if at+512 > len(data) {
		return false
	}
	for i, o := range offs {
		if le.Uint16(data[at+2*i:]) != o {
			return false
		}
	}
	return true
}

// find looks for the other tables before the token table and after the token
// index. The token table of 7.0 may stand at a multiple of 8 by chance, so both
// ways to align are tried.
func (k *kallsymsTables) find(table, index int, inText func(x86.Addr) bool, budget *int) ([]Symbol, bool) {
	for q := (table - 4) &^ 3; q >= 0; q -= 4 {
		for _, align := range []int{8, 4} {
			n, ok := k.numAt(q, align, table)
			if !ok || n < minKallsyms || n > bounded.Kallsyms || int(n) > (table-q)/2 {
				continue
			}
			k.align, k.num, k.names = align, int(n), q+align
			if !k.namesFit(table, budget) {
				if *budget <= 0 {
					return nil, false
				}
				continue
			}
			if syms, ok := k.expand(); ok && k.decodeAddrs(syms, q, index+512, inText) {
				return syms, true
			}
		}
	}
	return nil, false
}

// numAt is num_syms as it stands at q: 8 bytes at a multiple of 8, 4 bytes from
// 7.0 on.
func (k *kallsymsTables) numAt(q, align, table int) (n uint64, ok bool) {
	switch {
	case align == 4:
		n = uint64(le.Uint32(k.data[q:]))
		return n, k.marksBegin(n, table-q, table)
	case q%8 == 0 && q+8 <= len(k.data):
		return le.Uint64(k.data[q:]), true
	}
	return 0, false
}

// marksBegin reports whether the markers of n names, which end where the token
// table starts from 7.0 on, begin as they must: at 0, then within the names. A
// 4-byte number is too common in the data to walk the names for each.
func (k *kallsymsTables) marksBegin(n uint64, room, table int) bool {
	start := uint64(table) - 4*((n+255)/256)
	if n < minKallsyms || n > bounded.Kallsyms || start > uint64(table) || le.Uint32(k.data[start:]) != 0 {
		return false
	}
	second := start + 4
	return second >= uint64(table) || 2*256 <= le.Uint32(k.data[second:]) && int(le.Uint32(k.data[second:])) < room
}

// nameAt returns the compressed name at an offset, and the offset of the next
// one. The length is one byte, or from 6.1 on two, low seven bits first, when
// the first has bit 7 set.
func (k *kallsymsTables) nameAt(at int) (name []byte, next int, ok bool) {
	if at >= len(k.data) {
		return nil, 0, false
	}
	n := int(k.data[at])
	at++
	if n&0x80 != 0 {
		if at >= len(k.data) {
			return nil, 0, false
		}
		n = n&0x7f | int(k.data[at])<<7
		at++
	}
	if n == 0 || n > len(k.data)-at {
		return nil, 0, false
	}
	return k.data[at : at+n], at + n, true
}

// namesFit walks all names and compares the markers that follow them: the
// offset of every 256th name, in 4 bytes each (8 to 4.19).
func (k *kallsymsTables) namesFit(table int, budget *int) bool {
	var marks []int
	at := k.names
	for i := range k.num {
		if i&255 == 0 {
			marks = append(marks, at-k.names)
		}
		_, next, ok := k.nameAt(at)
		*budget--
		if !ok || next > table || *budget <= 0 {
			return false
		}
		at = next
	}
	at = alignUp(at, k.align)
	return k.marksAt(at, table, marks, 4) || k.marksAt(at, table, marks, 8)
}

func (k *kallsymsTables) marksAt(at, table int, marks []int, size int) bool {
	if at+len(marks)*size > table {
		return false
	}
	for i, m := range marks {
		b := k.data[at+i*size:]
		if size == 4 && int(le.Uint32(b)) != m || size == 8 && le.Uint64(b) != uint64(m) {
			return false
		}
	}
	return true
}

// expand decodes all names, with their type letters, into one string that
// they share.
func (k *kallsymsTables) expand() ([]Symbol, bool) {
	total := 0
	at := k.names
	for range k.num {
		name, next, _ := k.nameAt(at)
		for _, c := range name {
			total += len(k.tokens[c])
		}
		at = next
	}
	if total > bounded.KallsymsNames {
		return nil, false
	}
	arena := make([]byte, 0, total)
	ends := make([]uint32, k.num)
	at = k.names
	for i := range k.num {
		name, next, _ := k.nameAt(at)
		for _, c := range name {
			arena = append(arena, k.tokens[c]...)
		}
		ends[i] = uint32(len(arena))
		at = next
	}
	return cutNames(string(arena), ends)
}

func cutNames(arena string, ends []uint32) ([]Symbol, bool) {
	syms := make([]Symbol, len(ends))
	var start uint32
	for i, end := range ends {
		s := arena[start:end]
		if len(s) < 2 || !isLetter(s[0]) {
			return nil, false
		}
		syms[i].Type, syms[i].Name = s[0], printable.Name(s[1:])
		start = end
	}
	return syms, true
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '?' }

// alignUp is n, or the next multiple of a power of two.
func alignUp(n, to int) int { return (n + to - 1) &^ (to - 1) }

// decodeAddrs finds the addresses, before num_syms at q or from after on, and
// gives them to the symbols.
func (k *kallsymsTables) decodeAddrs(syms []Symbol, q, after int, inText func(x86.Addr) bool) bool {
	if k.align == 4 {
		return k.decodeSelfRelative(syms, alignUp(after, 4)) && plausible(syms, inText)
	}
	for _, place := range []func(int, int) ([]byte, uint64, bool){k.offsetsBefore, k.offsetsAfter} {
		offs, base, ok := place(q, after)
		if !ok {
			continue
		}
		for _, decode := range []func(uint32, uint64) x86.Addr{percpuOffset, plainOffset} {
			for i := range syms {
				syms[i].Addr = decode(le.Uint32(offs[4*i:]), base)
			}
			if plausible(syms, inText) {
				return true
			}
		}
	}
	// Absolute addresses (to 4.5, or without BASE_RELATIVE).
	start := q - 8*len(syms)
	if start < 0 {
		return false
	}
	for i := range syms {
		syms[i].Addr = x86.Addr(le.Uint64(k.data[start+8*i:]))
	}
	return plausible(syms, inText)
}

// decodeSelfRelative reads offsets that count from their own places, from 7.0 on.
func (k *kallsymsTables) decodeSelfRelative(syms []Symbol, start int) bool {
	if start+4*len(syms) > len(k.data) {
		return false
	}
	for i := range syms {
		off := start + 4*i
		syms[i].Addr = k.at.Add(int64(off) + int64(int32(le.Uint32(k.data[off:]))))
	}
	return true
}

func (k *kallsymsTables) offsetsBefore(q, _ int) (offs []byte, base uint64, ok bool) {
	start := q - 8 - alignUp(4*k.num, 8)
	if start < 0 {
		return nil, 0, false
	}
	return k.data[start : start+4*k.num], le.Uint64(k.data[q-8:]), true
}

func (k *kallsymsTables) offsetsAfter(_, after int) (offs []byte, base uint64, ok bool) {
	start := alignUp(after, 8)
	end := start + alignUp(4*k.num, 8)
	if end+8 > len(k.data) {
		return nil, 0, false
	}
	return k.data[start : start+4*k.num], le.Uint64(k.data[end:]), true
}

// percpuOffset is ABSOLUTE_PERCPU (SMP, to 6.14): per-CPU symbols are small
// numbers as they are, all others count down from the base.
func percpuOffset(off uint32, base uint64) x86.Addr {
	if int32(off) >= 0 {
		return x86.Addr(off)
	}
	return x86.Addr(base - 1 - uint64(int64(int32(off))))
}

func plainOffset(off uint32, base uint64) x86.Addr { return x86.Addr(base + uint64(off)) }

// plausible reports whether addresses ascend, as the kernel's own bisection
// needs them to, and _text or _stext is in text.
func plausible(syms []Symbol, inText func(x86.Addr) bool) bool {
	found := false
	for i := range syms {
		if i > 0 && syms[i].Addr < syms[i-1].Addr {
			return false
		}
		if n := syms[i].Name; n == "_text" || n == "_stext" {
			if !inText(syms[i].Addr) {
				return false
			}
			found = true
		}
	}
	return found
}
