package kimage

import (
	"slices"

	"kprobelab/x86"
)

// part is a part of the kernel's memory with a section's name. If parts overlap, the
// last one counts.
type part struct {
	name, start, stop string
	// gone: boot has freed it, and it holds what others have put there.
	gone bool
	// unless names a list; as long as it has an element, the part is not freed.
	unless string
}

var parts = []part{
	{name: ".text", start: "_text", stop: "_etext"},
	{name: ".rodata", start: "__start_rodata", stop: "__end_rodata"},
	{name: ".bss", start: "__bss_start", stop: "__bss_stop"},
	{name: ".BTF", start: "__start_BTF", stop: "__stop_BTF"},
	{name: ".orc_unwind_ip", start: "__start_orc_unwind_ip", stop: "__stop_orc_unwind_ip"},
	{name: ".orc_unwind", start: "__start_orc_unwind", stop: "__stop_orc_unwind"},
	{name: ".notes", start: "__start_notes", stop: "__stop_notes"},
	{name: "init", start: "__init_begin", stop: "__init_end", gone: true},
	// Only a machine that may yet get a second processor keeps it
	// (alternative_instructions).
	{name: ".smp_locks", start: "__smp_locks", stop: "__smp_locks_end", gone: true, unless: "smp_alt_modules"},
}

// moduleSpaceEnd is the end of module space, at which the fixed maps begin.
const moduleSpaceEnd = x86.Addr(0xffffffffff000000)

// restOfKernel names the section of all memory that is in no other part.
const restOfKernel = ".data"

// layOut makes sections of the kernel's mapping, by its symbols, and segments of
// its pages.
func (d *dump) layOut() error {
	at := map[string]x86.Addr{}
	for _, s := range d.img.Symbols() {
		if _, ok := at[s.Name]; !ok {
			at[s.Name] = s.Addr
		}
	}
	ranges := make([]x86.Range, len(parts))
	var gone []x86.Range
	for i, p := range parts {
		r := x86.Range{Start: at[p.start], End: at[p.stop]}
		if r.Start == 0 || r.Start >= r.End {
			continue
		}
		ranges[i] = r
		if list := at[p.unless]; p.gone && (list == 0 || d.Word(list) == list) {
			gone = append(gone, r)
		}
	}
	if ranges[0].End == 0 {
		return d.bad("a Linux kernel is wanted: its symbols do not say where its text begins and ends")
	}
	for _, r := range d.runs {
		for _, piece := range without(r.Range, gone) {
			d.laySegment(piece, r)
			d.laySections(piece, r, ranges)
		}
	}
	// Where no module is any more, its init code was.
	d.img.freed = append(gone, x86.Range{Start: kernelMapEnd, End: moduleSpaceEnd})
	return nil
}

// without is a range without the whole pages of others, which ascend.
func without(r x86.Range, gone []x86.Range) []x86.Range {
	var list []x86.Range
	for _, g := range gone {
		start, end := (g.Start+pageSize-1)&^(pageSize-1), g.End&^(pageSize-1)
		if start >= end || !r.Overlaps(x86.Range{Start: start, End: end}) {
			continue
		}
		if r.Start < start {
			list = append(list, x86.Range{Start: r.Start, End: start})
		}
		r.Start = min(end, r.End)
	}
	if r.Start < r.End {
		list = append(list, r)
	}
	return list
}

// bytes are the memory of a range.
func (d *dump) bytes(r x86.Range) []byte {
	from, to := r.Start.Sub(d.Start), r.End.Sub(d.Start)
	return d.Data[from:to:to]
}

func (d *dump) laySegment(piece x86.Range, r run) {
	d.img.segments = append(d.img.segments, Segment{
		Name: "kernel", Addr: piece.Start, Data: d.bytes(piece), Size: uint64(piece.End - piece.Start), Write: r.write, Exec: r.exec,
	})
}

func (d *dump) laySections(piece x86.Range, r run, ranges []x86.Range) {
	named := make([]namedRange, len(ranges))
	for i := range ranges {
		named[i] = namedRange{parts[i].name, ranges[i]}
	}
	d.img.sections = append(d.img.sections, cutSections(piece, d.bytes(piece), r.write, named, restOfKernel)...)
}

// namedRange is a part of memory that has a section's name.
type namedRange struct {
	name string
	x86.Range
}

// codeSections are the names of the sections with code.
var codeSections = []string{".text", ".init.text", ".kprobes.text", ".noinstr.text"}

// cutSections makes sections of a piece of memory: it is cut at the beginning and end of each
// named part. If parts overlap, the last one counts; memory in no part gets the name of the rest.
func cutSections(piece x86.Range, data []byte, write bool, named []namedRange, rest string) []*Section {
	cuts := []x86.Addr{piece.Start, piece.End}
	for _, p := range named {
		for _, a := range []x86.Addr{p.Start, p.End} {
			if piece.Contains(a) {
				cuts = append(cuts, a)
			}
		}
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	var list []*Section
	for i := range len(cuts) - 1 {
		from, to := cuts[i].Sub(piece.Start), cuts[i+1].Sub(piece.Start)
		name := rest
		for _, p := range named {
			if p.Contains(cuts[i]) {
				name = p.name
			}
		}
		list = append(list, &Section{
			Name: name, Addr: cuts[i], Data: data[from:to:to], Size: uint64(to - from), Align: 1,
			Alloc: true, Write: write, Exec: slices.Contains(codeSections, name),
		})
	}
	return list
}
