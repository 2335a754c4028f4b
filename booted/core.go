package booted

import (
	"encoding/binary"
	"fmt"
	"io"

	"kprobelab/kimage/vmcore"
	"kprobelab/machine"
	"kprobelab/x86"
)

// Core writes the booted kernel's present state as an ELF core file, which crash and gdb read. It works after a panic, too.
// The current CPU's registers are the present ones; the other CPUs' registers come from the dump.
func (k *Kernel) Core(w io.Writer) error {
	img := k.image.Core().Image()
	if n := k.machine.CPU(); n < len(img.CPUs) {
		cpus := append([]vmcore.CPU(nil), img.CPUs...)
		regs := k.machine.Stopped()
		cpus[n].Regs, cpus[n].GSBase = regs, uint64(k.machine.GSBase(n))
		img.CPUs = cpus
	}
	base := machine.DirectMap
	if p := k.image.Lookup("page_offset_base"); len(p) == 1 {
		var b [8]byte
		if err := k.machine.ReadMem(p[0].Addr, b[:]); err != nil {
			return fmt.Errorf("where the kernel maps its memory: %w", err)
		}
		base = x86.Addr(binary.LittleEndian.Uint64(b[:]))
	}
	for i := range img.Memory {
		m := &img.Memory[i]
		m.Virt = uint64(base) + m.Phys
		m.Data = &live{k.machine.ReadMem, base + x86.Addr(m.Phys), m.Size}
	}
	if text, ok := k.text(); ok {
		img.Also = placed(img.Memory, text)
	}
	return vmcore.Write(w, img)
}

// textMap is the virtual address at which a kernel without KASLR maps physical address 0 for its text
// (Documentation/arch/x86/x86_64/mm.rst).
const textMap = 0xffffffff80000000

// placed returns the physical place of the text, for readers that walk no page tables.
func placed(memory []vmcore.Memory, text x86.Range) []vmcore.Placed {
	p := vmcore.Placed{Virt: uint64(text.Start) &^ (vmcore.PageSize - 1)}
	p.Phys = p.Virt - textMap
	p.Size = (uint64(text.End) - p.Virt + vmcore.PageSize - 1) &^ (vmcore.PageSize - 1)
	for _, m := range memory {
		if p.Phys >= m.Phys && p.End() <= m.End() {
			return []vmcore.Placed{p}
		}
	}
	return nil
}

// live is a range of the guest's memory as it is now. Pages that the kernel does not map are zeros.
type live struct {
	read func(x86.Addr, []byte) error
	at   x86.Addr
	size uint64
}

// ReadAt implements io.ReaderAt.
func (l *live) ReadAt(b []byte, off int64) (int, error) {
	n := int(min(uint64(len(b)), l.size-min(l.size, uint64(off))))
	for at := 0; at < n; at += vmcore.PageSize {
		page := b[at:min(at+vmcore.PageSize, n)]
		if l.read(l.at.Add(off+int64(at)), page) != nil {
			clear(page)
		}
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}
