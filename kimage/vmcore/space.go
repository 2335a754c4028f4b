package vmcore

import (
	"errors"

	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// PhysReader reads physical memory.
type PhysReader interface {
	ReadPhys(phys uint64, b []byte) error
}

// Space is a virtual address space: page tables in physical memory. It is read from
// one goroutine at a time, and sees changes of the tables, but not in a file.
type Space struct {
	mem    PhysReader
	root   uint64
	levels int
	entry  [8]byte
	kept   keptTables
}

// keptTables are page tables that were read from a file, by their physical address. Without them (nil), each
// entry is read when it is looked at.
type keptTables map[uint64]*[PageSize]byte

// NewSpace is the address space of a value of CR3, whose page tables have 4 or 5
// levels.
func NewSpace(mem PhysReader, cr3 uint64, levels int) *Space {
	return &Space{mem: mem, root: cr3 & entryAddr, levels: levels}
}

// Space is the address space of a value of CR3 in the dump.
func (c *Core) Space(cr3 uint64, levels int) *Space {
	s := NewSpace(c, cr3, levels)
	s.kept = keptTables{}
	return s
}

// of is the address space of another top table of the same memory.
func (s *Space) of(root uint64) *Space {
	return &Space{mem: s.mem, root: root, levels: s.levels, kept: s.kept}
}

// KernelHalf is the address space with the kernel mapped, of one that may be the
// user's. Only where page table isolation is on are there two: the top tables of a
// process lie beside each other, the user's second (arch/x86/mm/pti.c).
func (s *Space) KernelHalf() *Space { return s.of(s.root &^ PageSize) }

// UserHalf is the address space that user mode has under page table isolation.
func (s *Space) UserHalf() *Space { return s.of(s.root | PageSize) }

// Bits of page table entries (SDM Vol. 3, "Paging", "4-Level Paging and 5-Level
// Paging").
const (
	entryPresent = 1 << 0
	entryWrite   = 1 << 1
	entryUser    = 1 << 2
	entryLarge   = 1 << 7
	entryGlobal  = 1 << 8
	entryNoExec  = 1 << 63
	entryAddr    = maxPhys - PageSize
)

// Translation is the result of a walk of the page tables for an address.
type Translation struct {
	// Phys is the physical address.
	Phys uint64
	// PageSize is the size of the page: 4 KiB, 2 MiB or 1 GiB.
	PageSize uint64
	// The rights that the tables of all levels give.
	Write, User, Exec bool
	// Global pages stay in the TLB when CR3 changes.
	Global bool
}

// Translate walks the page tables. The error is a *NotMappedError, or the error of reading a table.
func (s *Space) Translate(va x86.Addr) (Translation, error) {
	if !s.canonical(va) {
		return Translation{}, &NotMappedError{va, 0}
	}
	t := Translation{Write: true, User: true, Exec: true}
	table := s.root
	for level := s.levels; ; level-- {
		shift := 12 + 9*(level-1)
		index := uint64(va) >> shift & 511
		e, err := s.read(table + 8*index)
		if err != nil {
			return Translation{}, err
		}
		if e&entryPresent == 0 {
			return Translation{}, &NotMappedError{va, level}
		}
		t.Write = t.Write && e&entryWrite != 0
		t.User = t.User && e&entryUser != 0
		t.Exec = t.Exec && e&entryNoExec == 0
		table = e & entryAddr
		if level == 1 || level <= 3 && e&entryLarge != 0 {
			t.PageSize = 1 << shift
			t.Phys = table&^(t.PageSize-1) | uint64(va)&(t.PageSize-1)
			t.Global = e&entryGlobal != 0
			return t, nil
		}
	}
}

// read reads an entry. A dump leaves out page tables only if they are zero.
func (s *Space) read(phys uint64) (uint64, error) {
	if t := s.table(phys &^ (PageSize - 1)); t != nil {
		return le.Uint64(t[phys%PageSize:]), nil
	}
	var filtered *FilteredError
	err := s.mem.ReadPhys(phys, s.entry[:])
	if errors.As(err, &filtered) && filtered.Level&levelZero != 0 {
		return 0, nil
	}
	return le.Uint64(s.entry[:]), err
}

// table is a page table of a file; nil if its entries have to be read one by one, also because the file has not all of it.
func (s *Space) table(phys uint64) *[PageSize]byte {
	if s.kept == nil {
		return nil
	}
	if t := s.kept[phys]; t != nil {
		return t
	}
	t := new([PageSize]byte)
	if s.mem.ReadPhys(phys, t[:]) != nil {
		return nil
	}
	if len(s.kept) == bounded.DumpTables {
		clear(s.kept)
	}
	s.kept[phys] = t
	return t
}

// canonical: the untranslated high bits all equal the highest translated bit.
func (s *Space) canonical(va x86.Addr) bool {
	unused := 64 - (12 + 9*s.levels)
	return uint64(int64(va)<<unused>>unused) == uint64(va)
}

// Read fills b with the memory at a virtual address. Up to the error, b is filled.
func (s *Space) Read(va x86.Addr, b []byte) error {
	for len(b) > 0 {
		t, err := s.Translate(va)
		if err != nil {
			return err
		}
		n := min(uint64(len(b)), t.PageSize-uint64(va)&(t.PageSize-1))
		if err := s.mem.ReadPhys(t.Phys, b[:n]); err != nil {
			return err
		}
		va, b = va+x86.Addr(n), b[n:]
	}
	return nil
}
