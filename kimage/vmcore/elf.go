package vmcore

import (
	"cmp"
	"io"
	"slices"

	"kprobelab/internal/bounded"
)

// ELF as far as dumps need it (System V ABI, "Object Files").
const (
	elfHeaderSize  = 64
	elfProgramSize = 56
	elfSectionSize = 64
	elfCore        = 4
	elfAMD64       = 62
	elfLoad        = 1
	elfNote        = 4
	// elfManySegments in e_phnum: the count is in the first section's sh_info.
	elfManySegments = 0xffff
)

func isELF(b []byte) bool { return prefix("\x7fELF")(b) }

// machines names other architectures by their ELF numbers.
var machines = map[uint16]string{3: "32-bit x86", 8: "MIPS", 20: "32-bit PowerPC", 21: "PowerPC", 22: "s390", 40: "32-bit ARM", 183: "ARM64", 243: "RISC-V", 258: "LoongArch"}

// readELF reads an ELF core file.
func readELF(c *Core, s source) error {
	h, err := s.bytes(0, elfHeaderSize)
	if err != nil {
		return err
	}
	machine := le.Uint16(h[18:])
	switch {
	case h[5] != 1:
		return bad("a dump of an x86-64 machine is wanted, this one is big-endian")
	case machine != elfAMD64 && machines[machine] != "":
		return bad("a dump of an x86-64 machine is wanted, this is one of %s", machines[machine])
	case machine != elfAMD64:
		return bad("a dump of an x86-64 machine is wanted, this one has the ELF machine number %d", machine)
	case h[4] != 2:
		return bad("a 64-bit dump is wanted, this one is 32-bit")
	case le.Uint16(h[16:]) != elfCore:
		return bad("a memory dump is wanted, this is an ELF of another type (%d)", le.Uint16(h[16:]))
	case le.Uint16(h[54:]) != elfProgramSize:
		return bad("program headers of %d bytes are wanted, its have %d", elfProgramSize, le.Uint16(h[54:]))
	}
	table, err := programHeaders(h, s)
	if err != nil {
		return err
	}
	mem, err := c.readSegments(table, s)
	if err != nil {
		return err
	}
	c.mem = mem
	return c.setRAM(mem.ranges())
}

// programHeaders are the bytes of the table.
func programHeaders(h []byte, s source) ([]byte, error) {
	n := int64(le.Uint16(h[56:]))
	if n == elfManySegments {
		section, err := s.bytes(int64(le.Uint64(h[40:])), elfSectionSize)
		if err != nil {
			return nil, err
		}
		n = int64(le.Uint32(section[44:]))
	}
	if n > bounded.DumpSegments {
		return nil, bad("it has %d segments, at most %d are read", n, bounded.DumpSegments)
	}
	return s.bytes(int64(le.Uint64(h[32:])), n*elfProgramSize)
}

// readSegments reads notes and places memory.
func (c *Core) readSegments(table []byte, s source) (*elfMemory, error) {
	mem := &elfMemory{source: s}
	processes := 0
	for ; len(table) > 0; table = table[elfProgramSize:] {
		off, size := le.Uint64(table[8:]), le.Uint64(table[32:])
		phys, memSize := le.Uint64(table[24:]), le.Uint64(table[40:])
		switch le.Uint32(table) {
		case elfNote:
			if size > bounded.DumpNotes {
				return nil, bad("its notes have %#x bytes, at most %#x are read", size, bounded.DumpNotes)
			}
			b, err := s.bytes(int64(off), int64(size))
			if err != nil {
				return nil, err
			}
			if err := c.setNotes(notes(b)); err != nil {
				return nil, err
			}
		case elfLoad:
			// A crashed kernel's dump has vmalloc space in segments of no physical address.
			if phys == ^uint64(0) || memSize == 0 {
				continue
			}
			if phys == 0 && le.Uint64(table[16:]) != 0 {
				processes++
			}
			if phys >= maxPhys || memSize > maxPhys || size > memSize {
				return nil, bad("a segment has %#x bytes of memory at %#x, with %#x in the file", memSize, phys, size)
			}
			if err := s.within(int64(off), int64(size)); err != nil {
				return nil, err
			}
			mem.add(extent{Range{phys, size}, int64(off)}, extent{Range{phys + size, memSize - size}, -1})
		}
	}
	if processes > 1 {
		return nil, bad("this is the core file of a process; the dump of a machine is wanted")
	}
	mem.order()
	return mem, nil
}

// elfMemory is memory in segments.
type elfMemory struct {
	source
	// extents by ascending address, whole pages, without overlap.
	extents []extent
}

// extent is a part of memory, and its offset in the file; off is negative if the file
// has none of its bytes: makedumpfile -E leaves out runs of 256 pages and more.
type extent struct {
	Range
	off int64
}

func (m *elfMemory) add(list ...extent) {
	for _, e := range list {
		if e.Size > 0 {
			m.extents = append(m.extents, e)
		}
	}
}

// order sorts the extents. Of what is there twice, as the kernel's text is in
// /proc/vmcore, one is kept. Pages of which a part is missing are dropped, unless
// the next extent has that part.
func (m *elfMemory) order() {
	slices.SortStableFunc(m.extents, func(a, b extent) int { return cmp.Compare(a.Phys, b.Phys) })
	kept := m.extents[:0]
	end := uint64(0)
	for _, e := range m.extents {
		if e.End() <= end {
			continue
		}
		if skip := max(e.Phys, end) - e.Phys; skip > 0 {
			e.Phys, e.Size = e.Phys+skip, e.Size-skip
			if e.off >= 0 {
				e.off += int64(skip)
			}
		}
		kept, end = append(kept, e), e.End()
	}
	m.extents = kept
}

// ranges are the whole pages.
func (m *elfMemory) ranges() []Range {
	var list []Range
	for _, e := range m.extents {
		if last := len(list) - 1; last >= 0 && list[last].End() == e.Phys {
			list[last].Size += e.Size
		} else {
			list = append(list, e.Range)
		}
	}
	whole := list[:0]
	for _, r := range list {
		start, end := (r.Phys+PageSize-1)&^(PageSize-1), r.End()&^(PageSize-1)
		if start < end {
			whole = append(whole, Range{start, end - start})
		}
	}
	return whole
}

// at is the index of the extent that holds an address of RAM.
func (m *elfMemory) at(phys uint64) int {
	i, found := slices.BinarySearchFunc(m.extents, phys, func(e extent, p uint64) int { return cmp.Compare(e.Phys, p) })
	if !found {
		i--
	}
	return i
}

func (m *elfMemory) present(phys uint64) error {
	if page := phys &^ (PageSize - 1); m.extents[m.at(page)].off < 0 {
		return &FilteredError{Phys: page, Level: LevelUnknown}
	}
	return nil
}

func (m *elfMemory) read(phys uint64, b []byte) error {
	for i := m.at(phys); len(b) > 0; {
		e := m.extents[i]
		n := min(uint64(len(b)), e.End()-phys)
		if e.off < 0 {
			clear(b[:n])
		} else if _, err := m.ReadAt(b[:n], e.off+int64(phys-e.Phys)); err != nil && err != io.EOF {
			return err
		}
		b, phys, i = b[n:], phys+n, i+1
	}
	return nil
}

// maxDirect is the most pieces of a file that are mapped. Memory in more pieces is
// copied: each machine would need as many mappings.
const maxDirect = 64

// pieces returns the extents themselves if the file can be mapped.
func (m *elfMemory) pieces() []Piece {
	if m.file == nil || len(m.extents) > maxDirect {
		return nil
	}
	var list []Piece
	for _, e := range m.extents {
		p := Piece{Range: e.Range}
		if e.off >= 0 {
			p.File, p.Off = m.file, e.off
		}
		if p.Phys%PageSize != 0 || p.Size%PageSize != 0 || p.Off%PageSize != 0 {
			return nil
		}
		list = append(list, p)
	}
	return list
}
