package kimage

import (
	"bytes"
	"cmp"
	"slices"

	"kprobelab/internal/container"
	"kprobelab/x86"
)

// The tests build their own small files: no kernel's bytes are kept here.

// testSection is one section of a file under construction.
type testSection struct {
	name       string
	typ        uint32
	flags      uint64
	addr       uint64
	data       []byte
	size       uint64 // for NOBITS
	link, info uint32
}

// testELF builds an ELF of sections, with one PT_LOAD per allocated section
// unless it is relocatable. Sections are numbered from 1.
func testELF(typ uint16, sections ...testSection) []byte {
	names := []byte{0}
	b := make([]byte, ehdrSize)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], typ)
	le.PutUint16(b[18:], emX8664)
	le.PutUint16(b[52:], ehdrSize)
	le.PutUint16(b[54:], phdrSize)
	le.PutUint16(b[58:], shdrSize)
	loads := 0
	if typ != etRel {
		for _, s := range sections {
			if s.flags&shfAlloc != 0 {
				loads++
			}
		}
		le.PutUint64(b[32:], ehdrSize)
		le.PutUint16(b[56:], uint16(loads))
		b = append(b, make([]byte, loads*phdrSize)...)
	}
	heads := make([]byte, shdrSize)
	ph := ehdrSize
	for _, s := range sections {
		for uint64(len(b))%16 != s.addr%16 {
			b = append(b, 0)
		}
		off := uint64(len(b))
		size := max(s.size, uint64(len(s.data)))
		b = append(b, s.data...)
		heads = appendShdr(heads, uint32(len(names)), s, off, size)
		names = append(append(names, s.name...), 0)
		if typ != etRel && s.flags&shfAlloc != 0 {
			putPhdr(b[ph:], s, off, size)
			ph += phdrSize
		}
	}
	strs := testSection{name: ".shstrtab", typ: 3}
	heads = appendShdr(heads, uint32(len(names)), strs, uint64(len(b)), uint64(len(names)+10))
	b = append(append(append(b, names...), strs.name...), 0)
	le.PutUint64(b[40:], uint64(len(b)))
	le.PutUint16(b[60:], uint16(len(sections)+2))
	le.PutUint16(b[62:], uint16(len(sections)+1))
	return append(b, heads...)
}

func appendShdr(heads []byte, name uint32, s testSection, off, size uint64) []byte {
	h := make([]byte, shdrSize)
	le.PutUint32(h, name)
	le.PutUint32(h[4:], s.typ)
	le.PutUint64(h[8:], s.flags)
	le.PutUint64(h[16:], s.addr)
	le.PutUint64(h[24:], off)
	le.PutUint64(h[32:], size)
	le.PutUint32(h[40:], s.link)
	le.PutUint32(h[44:], s.info)
	le.PutUint64(h[48:], 16)
	return append(heads, h...)
}

func putPhdr(h []byte, s testSection, off, size uint64) {
	flags := uint32(4)
	if s.flags&shfWrite != 0 {
		flags |= 2
	}
	if s.flags&shfExec != 0 {
		flags |= 1
	}
	le.PutUint32(h, ptLoad)
	le.PutUint32(h[4:], flags)
	le.PutUint64(h[8:], off)
	le.PutUint64(h[16:], s.addr)
	le.PutUint64(h[32:], uint64(len(s.data)))
	le.PutUint64(h[40:], size)
}

// testSymbols builds .symtab and .strtab; strtab is the index of the latter.
func testSymbols(strtab uint32, syms ...elfSymbol) (symtab, strs testSection) {
	names := []byte{0}
	b := make([]byte, symSize)
	for _, s := range syms {
		e := make([]byte, symSize)
		le.PutUint32(e, uint32(len(names)))
		e[4] = s.info
		le.PutUint16(e[6:], s.shndx)
		le.PutUint64(e[8:], s.value)
		le.PutUint64(e[16:], s.size)
		b = append(b, e...)
		names = append(append(names, s.name...), 0)
	}
	return testSection{name: ".symtab", typ: shtSymtab, data: b, link: strtab}, testSection{name: ".strtab", typ: 3, data: names}
}

// testRela builds a relocation section for the section with index target.
func testRela(symtab, target uint32, relocs ...rela) testSection {
	var b []byte
	for _, r := range relocs {
		e := make([]byte, relaSize)
		le.PutUint64(e, r.off)
		le.PutUint64(e[8:], uint64(r.sym)<<32|uint64(r.typ))
		le.PutUint64(e[16:], uint64(r.addend))
		b = append(b, e...)
	}
	return testSection{name: ".rela", typ: shtRela, data: b, link: symtab, info: target}
}

// kallsymsLayout is one of the layouts that the kernel has had.
type kallsymsLayout struct {
	name string
	// after: addresses follow token_index (6.4 and later).
	after bool
	// absolute: 8-byte addresses and no base (before 4.6).
	absolute bool
	// percpu: ABSOLUTE_PERCPU offsets.
	percpu bool
	// marker is the size of a marker in bytes.
	marker int
	// seqs: there is a seqs_of_names table.
	seqs bool
	// self: offsets that count from their own places, tables at multiples of 4
	// (7.0 and later).
	self bool
}

var kallsymsLayouts = []kallsymsLayout{
	{name: "4.4", absolute: true, marker: 8},
	{name: "4.19", percpu: true, marker: 8},
	{name: "5.10", percpu: true, marker: 4},
	{name: "6.1", percpu: true, marker: 4, seqs: true},
	{name: "6.12", percpu: true, marker: 4, seqs: true, after: true},
	{name: "6.15", marker: 4, seqs: true, after: true},
	{name: "7.0", marker: 4, seqs: true, after: true, self: true},
}

// testTokens is a token table where most bytes stand for themselves and some
// for more.
func testTokens() [256]string {
	var t [256]string
	for i := range t {
		if i >= ' ' && i < 0x7f {
			t[i] = string(rune(i))
		}
	}
	t[1], t[2], t[3], t[200] = "__", "T_", "vfs_", "tsys_"
	return t
}

const testBase = 0xffffffff81000000

// testTables is the address at which tests put the tables.
const testTables = testBase + 0x1100

// build makes the tables of the symbols, which must be sorted by address, to
// stand at testTables.
func (l kallsymsLayout) build(syms []Symbol) []byte {
	tokens := testTokens()
	var names, marks, addrs, table, index, seqs []byte
	for i, s := range syms {
		if i&255 == 0 {
			marks = appendUint(marks, uint64(len(names)), l.marker)
		}
		packed := pack(&tokens, string(s.Type)+s.Name)
		if len(packed) < 0x80 {
			names = append(names, byte(len(packed)))
		} else {
			names = append(names, byte(len(packed))|0x80, byte(len(packed)>>7))
		}
		names = append(names, packed...)
		addrs = l.appendAddr(addrs, s.Addr)
		seqs = append(seqs, byte(i>>16), byte(i>>8), byte(i))
	}
	for _, t := range tokens {
		index = appendUint(index, uint64(len(table)), 2)
		table = append(append(table, t...), 0)
	}
	base := appendUint(nil, testBase, 8)
	if l.absolute {
		base = nil
	}
	if !l.seqs {
		seqs = nil
	}
	num := appendUint(nil, uint64(len(syms)), 8)
	if l.self {
		before := joinAligned(4, num[:4:4], names, marks, table, index)
		at := alignUp(len(before), 4)
		for i := range syms {
			le.PutUint32(addrs[4*i:], uint32(syms[i].Addr-testTables)-uint32(at+4*i))
		}
		return joinAligned(4, before, addrs, seqs)
	}
	if l.after {
		return joinAligned(8, num, names, marks, table, index, addrs, base, seqs)
	}
	return joinAligned(8, addrs, base, num, names, marks, seqs, table, index)
}

func (l kallsymsLayout) appendAddr(b []byte, a x86.Addr) []byte {
	switch {
	case l.absolute:
		return appendUint(b, uint64(a), 8)
	case l.percpu && a < 1<<31:
		return appendUint(b, uint64(a), 4)
	case l.percpu:
		return appendUint(b, testBase-1-uint64(a), 4)
	default:
		return appendUint(b, uint64(a)-testBase, 4)
	}
}

func pack(tokens *[256]string, s string) []byte {
	var b []byte
	for s != "" {
		best := int(s[0])
		for i, t := range tokens {
			if t != "" && len(t) > len(tokens[best]) && len(t) <= len(s) && s[:len(t)] == t {
				best = i
			}
		}
		b = append(b, byte(best))
		s = s[len(tokens[best]):]
	}
	return b
}

func appendUint(b []byte, v uint64, size int) []byte {
	for range size {
		b = append(b, byte(v))
		v >>= 8
	}
	return b
}

func joinAligned(align int, parts ...[]byte) []byte {
	var b []byte
	for _, p := range parts {
		b = append(b, make([]byte, alignUp(len(b), align)-len(b))...)
		b = append(b, p...)
	}
	return b
}

// testKernelSymbols are the symbols of testKernel, in table order.
func testKernelSymbols() []Symbol {
	syms := []Symbol{
		{Name: "fixed_percpu_data", Type: 'A', Addr: 0},
		{Name: "cpu_number", Type: 'A', Addr: 0x40},
		{Name: "_stext", Type: 'T', Addr: testBase},
		{Name: "_text", Type: 'T', Addr: testBase},
		{Name: "vfs_read", Type: 'T', Addr: testBase + 0x10},
		{Name: "__se_sys_read", Type: 't', Addr: testBase + 0x40},
		{Name: "__x64_sys_read", Type: 'T', Addr: testBase + 0x40},
		{Name: "dup", Type: 't', Addr: testBase + 0x50},
		{Name: "dup", Type: 't', Addr: testBase + 0x60},
		{Name: "_etext", Type: 'T', Addr: testBase + 0x100},
		{Name: "linux_banner", Type: 'D', Addr: testBase + 0x1000},
		{Name: "_end", Type: 'B', Addr: testBase + 0x9000},
	}
	for i := range 300 { // more than one marker
		syms = append(syms, Symbol{Name: "var_" + string(rune('a'+i%26)), Type: 'd', Addr: testBase + 0x8000 + x86.Addr(i)})
	}
	slices.SortStableFunc(syms, func(a, b Symbol) int { return cmp.Compare(a.Addr, b.Addr) })
	return syms
}

const testBanner = "Linux version 6.1.0-test (me@here) (gcc-12 (Debian 12.2.0) 12.2.0, GNU ld 2.40) #1 SMP PREEMPT_DYNAMIC today\n\x00"

// testKernel is a stripped kernel: text of one-byte no-ops, the banner and the
// kallsyms tables in .rodata, bss last.
func testKernel(l kallsymsLayout) []byte { return testKernelOf(l, testKernelSymbols(), "") }

// testKernelOf is testKernel with these symbols, and a text in .rodata.
func testKernelOf(l kallsymsLayout, symbols []Symbol, text string) []byte {
	rodata := make([]byte, 0x100)
	copy(rodata, testBanner)
	rodata = append(rodata, l.build(symbols)...)
	rodata = append(rodata, text...)
	return testELF(etExec,
		testSection{name: ".text", typ: 1, flags: shfAlloc | shfExec, addr: testBase, data: bytes.Repeat([]byte{0x90}, 0x100)},
		testSection{name: ".rodata", typ: 1, flags: shfAlloc | shfWrite, addr: testBase + 0x1000, data: rodata},
		testSection{name: ".data..percpu", typ: 1, flags: shfAlloc | shfWrite, addr: 0, data: make([]byte, 0x80)},
		testSection{name: ".bss", typ: shtNobits, flags: shfAlloc | shfWrite, addr: testBase + 0x8000, size: 0x1000},
	)
}

// testBzImage wraps a payload in a boot sector and a setup header.
func testBzImage(payload []byte, elfSize int) []byte {
	const start = 2 * bzSector
	b := make([]byte, start)
	b[bzSetupSects] = 1
	le.PutUint16(b[bzBootFlag:], 0xaa55)
	copy(b[bzMagic:], "HdrS")
	le.PutUint16(b[bzVersion:], 0x20f)
	le.PutUint16(b[bzXLoadFlags:], 1)
	if container.Packed(payload) && !bytes.HasPrefix(payload, []byte("\x1f\x8b")) {
		payload = appendUint(slices.Clone(payload), uint64(elfSize), 4)
	}
	le.PutUint32(b[bzPayloadLen:], uint32(len(payload)))
	return append(append(b, payload...), "after the payload"...)
}
