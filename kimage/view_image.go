package kimage

import "kprobelab/x86"

// CodeAt implements View. Zero-filled memory (bss) reads as zeros.
func (img *Image) CodeAt(addr x86.Addr, b []byte) int {
	n := 0
	for n < len(b) {
		at := addr + x86.Addr(n)
		s := img.sectionAt(at)
		if s == nil {
			return n + img.gap(at, b[n:])
		}
		off := uint64(at - s.Addr)
		rest := min(s.Size-off, uint64(len(b)-n))
		var have int
		if off < uint64(len(s.Data)) {
			have = copy(b[n:n+int(rest)], s.Data[off:])
		}
		clear(b[n+have : n+int(rest)])
		n += int(rest)
	}
	return n
}

// gap reads the padding between two sections of one segment, which memory
// has although no section claims it.
func (img *Image) gap(addr x86.Addr, b []byte) int {
	for i := range img.segments {
		g := &img.segments[i]
		off := uint64(addr - g.Addr)
		if addr < g.Addr || off >= g.Size {
			continue
		}
		end := g.Size - off
		if next := img.nextSection(addr); next > addr {
			end = min(end, uint64(next-addr))
		}
		end = min(end, uint64(len(b)))
		var have int
		if off < uint64(len(g.Data)) {
			have = copy(b[:end], g.Data[off:])
		}
		clear(b[have:end])
		if end < uint64(len(b)) && img.sectionAt(addr+x86.Addr(end)) != nil {
			return int(end) + img.CodeAt(addr+x86.Addr(end), b[end:])
		}
		return int(end)
	}
	return 0
}

// nextSection is the start of the first section above addr, 0 without one.
func (img *Image) nextSection(addr x86.Addr) x86.Addr {
	for _, s := range img.sections {
		if s.Addr > addr {
			return s.Addr
		}
	}
	return 0
}

// InEntryText implements View.
func (img *Image) InEntryText(addr x86.Addr) bool {
	b := &img.bounds
	return b.entry.Contains(addr) || img.profile.Optimize.IRQEntryText && b.irqEntry.Contains(addr)
}

// IndirectThunks implements View.
func (img *Image) IndirectThunks() x86.Range { return img.bounds.thunks }

// Segments lists the memory that a machine maps: the image's by ascending address, then
// the modules'. Their Data is the image's own memory: a machine that writes to it has
// to copy it first. The per-CPU template is not among them.
func (img *Image) Segments() []Segment { return img.segments }

// PerCPU is the template of the per-CPU area, and whether there is one.
func (img *Image) PerCPU() (PerCPU, bool) {
	s := img.percpu
	if s == nil {
		return PerCPU{}, false
	}
	return PerCPU{Start: s.Addr, Data: s.Data, Size: s.Size}, true
}
