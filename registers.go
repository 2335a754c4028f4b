package kprobelab

import (
	"encoding/binary"

	"kprobelab/decoder"
	"kprobelab/kimage"
	"kprobelab/kprobes/probepoint"
	"kprobelab/watch/registers"
	"kprobelab/x86"
)

// entryArea is cpu_entry_area's part of the address space (Documentation/arch/x86/x86_64/mm.rst).
var entryArea = x86.Range{Start: 0xfffffe0000000000, End: 0xfffffe8000000000}

// entryChecks are the functions that compare an address with cpu_entry_area; compilers have the first within the others.
var entryChecks = []string{"within_cpu_entry", "arch_build_bp_info", "hw_breakpoint_arch_parse"}

// entryAreaOf is the part of the area that a kernel protects, as its own code has it: the areas of all the CPUs that it
// was built for (CPU_ENTRY_AREA_MAP_SIZE), or from 6.2 on the whole part.
func entryAreaOf(img *kimage.Image) x86.Range {
	r := entryArea
	for _, f := range entryChecks {
		found, begun := false, false
		img.Walk(f, func(_ x86.Addr, i *decoder.Inst) bool {
			if i.Encoding != decoder.EncPrimary {
				return true
			}
			switch imm := x86.Addr(i.Imm()); {
			case i.Opcode >= 0xb8 && i.Opcode <= 0xbf && imm == entryArea.Start-1: // mov $start-1, then add $size
				begun = true
			case i.Opcode >= 0xb8 && i.Opcode <= 0xbf && imm.In(entryArea.Start, entryArea.End): // mov $end-1
				r.End, found = imm+1, true
			case begun && (i.Opcode == 0x05 || i.Opcode == 0x81) && i.Imm() > 0:
				r.End, found = entryArea.Start+imm, true
			}
			return !found
		})
		if found {
			return r
		}
	}
	return r
}

// gdtSize is GDT_SIZE: 16 entries of 8 bytes.
const gdtSize = 128

// entryVariables are the per-CPU variables that the ways into the kernel use, with their size or
// the struct that has it.
var entryVariables = []struct {
	name, of string
	size     uint64
}{
	{"gdt_page", "", gdtSize},
	{"cpu_tss_rw", "tss_struct", 0},
	{"cpu_tlbstate", "tlb_state", 0},
	{"cpu_dr7", "", 8},
}

// Registers returns the rules of the debug registers for this kernel (watch/registers): its CPUs, its
// blacklist, and the memory that no register may watch. No breakpoint is set.
func (l *Lab) Registers() *registers.Set {
	return registers.New(registers.Kernel{
		CPUs:        l.Machine.NumCPU(),
		Entry:       l.entryMemory(),
		Blacklisted: func(at x86.Addr) bool { return probepoint.Blacklisted(l.Image, at, l.Kprobes.Config()) },
		Paranoid:    2,
	})
}

func (l *Lab) entryMemory() []x86.Range {
	list := []x86.Range{entryAreaOf(l.Image)}
	if at, ok := l.variable("__per_cpu_offset"); ok {
		list = append(list, x86.Range{Start: at, End: at.Add(8 * int64(l.processors()))})
	}
	area, ok := l.Image.PerCPU()
	for _, v := range entryVariables {
		at, known := l.variable(v.name)
		if !ok || !known || at < area.Start || uint64(at-area.Start) >= area.Size {
			continue
		}
		size := v.size
		if t, ok := l.Image.Types().Struct(v.of); ok && v.of != "" {
			size = uint64(t.Size())
		}
		for cpu := range l.Machine.NumCPU() {
			own := l.Machine.GSBase(cpu) + at
			list = append(list, x86.Range{Start: own, End: own.Add(int64(size))})
		}
	}
	return list
}

// variable is the address of a symbol that there is one of.
func (l *Lab) variable(name string) (x86.Addr, bool) {
	if list := l.Image.Lookup(name); len(list) == 1 {
		return list[0].Addr, true
	}
	return 0, false
}

// processors is nr_cpu_ids.
func (l *Lab) processors() int {
	var b [4]byte
	if at, ok := l.variable("nr_cpu_ids"); ok && l.Machine.ReadMem(at, b[:]) == nil {
		if n := binary.LittleEndian.Uint32(b[:]); n != 0 && n < 1<<13 {
			return int(n)
		}
	}
	return l.Machine.NumCPU()
}
