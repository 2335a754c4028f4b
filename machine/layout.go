package machine

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"kprobelab/errno"
	"kprobelab/kimage"
	"kprobelab/x86"
)

// Where the kernel has things without KASLR (Documentation/arch/x86/x86_64/mm.rst).
const (
	DirectMap   x86.Addr = 0xffff888000000000
	vmallocBase x86.Addr = 0xffffc90000000000
	ModuleBase  x86.Addr = 0xffffffffc0000000
)

const (
	// ThreadSize is the size of a task's stack in bytes, and its alignment.
	ThreadSize = x86.ThreadSize
	// MaxTasks is the most tasks that a machine can have alive.
	MaxTasks = 256

	// UserSize is the size of user memory, in bytes.
	UserSize = 1 << 20

	execSize = 16 << 20
	// two segments with a smaller gap share a region
	regionGap = 16 << 20
)

// layImage reserves all memory of a kernel that has not booted.
func (m *Machine) layImage() error {
	if err := m.laySegments(m.src.Segments()); err != nil {
		return err
	}
	if w, ok := m.src.(Windowed); ok {
		for _, r := range w.Windows() {
			if _, err := m.reserve(r.Start, r.End); err != nil {
				return err
			}
		}
	}
	return m.layRest()
}

// laySegments maps the image. Pages that two segments share get the
// protections of both.
func (m *Machine) laySegments(list []kimage.Segment) error {
	for _, s := range list {
		if s.Size > MaxRegion || uint64(len(s.Data)) > s.Size {
			return fmt.Errorf("segment %s at %s: %#x bytes: %w", s.Name, s.Addr, s.Size, errno.EINVAL)
		}
		if end := s.Addr + x86.Addr(s.Size); end < s.Addr || end > lastPage {
			return fmt.Errorf("segment %s at %s: %#x bytes reach into the last page, where no memory can be: %w", s.Name, s.Addr, s.Size, errno.EINVAL)
		}
	}
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b kimage.Segment) int { return cmp.Compare(a.Addr, b.Addr) })
	for len(list) > 0 {
		n, end := 1, pageUp(list[0].Addr.Add(int64(list[0].Size)))
		for n < len(list) && (list[n].Addr < end || list[n].Addr-end < regionGap) {
			end = max(end, pageUp(list[n].Addr.Add(int64(list[n].Size))))
			n++
		}
		if err := m.layGroup(list[:n], end); err != nil {
			return err
		}
		list = list[n:]
	}
	return nil
}

func (m *Machine) layGroup(list []kimage.Segment, end x86.Addr) error {
	if _, err := m.reserve(pageDown(list[0].Addr), end); err != nil {
		return err
	}
	for _, s := range list {
		attr := byte(AttrR)
		if s.Write {
			attr |= AttrW
		}
		if s.Exec {
			attr |= AttrX
			if m.booted != nil {
				attr |= AttrDirty // as execPages has it
			}
		}
		m.engine.Allow(x86.Range{Start: s.Addr, End: s.Addr.Add(int64(s.Size))}, attr)
		m.copyIn(s.Addr, s.Data)
	}
	return nil
}

// layRest reserves heap, user memory, stacks, and executable pages after the
// modules.
func (m *Machine) layRest() (err error) {
	if m.heap.r, err = m.reserve(DirectMap, DirectMap+pageUp(x86.Addr(m.opt.HeapSize))); err != nil {
		return err
	}
	m.heap.next = DirectMap
	if m.user.r, err = m.reserve(x86.UserEnd-UserSize, x86.UserEnd); err != nil {
		return err
	}
	m.user.next = x86.UserEnd - UserSize
	if m.stacks, err = m.reserve(vmallocBase, vmallocBase+2*ThreadSize*MaxTasks); err != nil {
		return err
	}
	at := pageUp(m.src.ModuleEnd())
	if end := m.src.ModuleEnd(); end > lastPage {
		return fmt.Errorf("modules up to %s reach into the last page, where no memory can be: %w", end, errno.EINVAL)
	}
	if at == 0 {
		at = ModuleBase
	}
	m.execNext = at
	m.exec, err = m.reserve(at, at+execSize)
	return err
}

// layPerCPU gives each CPU its copy of the per-CPU area and writes the values of a booted kernel
// into it.
func (m *Machine) layPerCPU() error {
	t, ok := m.src.PerCPU()
	if !ok {
		t = kimage.PerCPU{Size: PageSize}
	}
	for _, c := range m.cpus {
		size := pageUp(x86.Addr(t.Size))
		area, err := m.heapPages(&m.heap, size+PageSize)
		if err != nil {
			return err
		}
		if err := m.layLocal(c, area+size); err != nil {
			return err
		}
		m.copyIn(area, t.Data)
		c.area, c.gs = area, area-t.Start
		m.bootPerCPU(c, t)
	}
	return nil
}

func (m *Machine) bootPerCPU(c *cpu, t kimage.PerCPU) {
	offset := uint64(c.gs)
	m.putPerCPU(c, t, "this_cpu_off", 0, binary.LittleEndian.AppendUint64(nil, offset))
	m.putPerCPU(c, t, "cpu_number", 0, binary.LittleEndian.AppendUint32(nil, uint32(c.n)))
	m.putPerCPU(c, t, "pcpu_hot", 12, binary.LittleEndian.AppendUint32(nil, uint32(c.n)))
	if p, ok := kimage.PreemptCount(m.src.Lookup); ok && p.At.In(t.Start, t.Start.Add(int64(t.Size))) {
		c.preempt, m.preempt = p.At+c.gs, p
	}
	m.bootPreemptCount(c)
	if s := m.src.Lookup("__per_cpu_offset"); len(s) == 1 {
		// It is read-only once the kernel is up (__ro_after_init). The machine
		// does not need it, so it is no error where it is not mapped.
		if h, err := m.engine.Bytes(s[0].Addr.Add(int64(8*c.n)), 8, AttrR); err == nil {
			binary.LittleEndian.PutUint64(h, offset)
		}
	}
}

// bootPreemptCount gives the CPU the preempt count of a task. The image has the count with which a
// kernel boots, which forbids preemption.
func (m *Machine) bootPreemptCount(c *cpu) {
	if c.preempt == 0 {
		return
	}
	h, err := m.engine.Bytes(c.preempt, m.preempt.Size, AttrW)
	if err == nil && m.preempt.Read(h) == 1 {
		m.preempt.Append(h[:0], m.preempt.NoResched())
	}
}

// perCPUVar is the address of off in c's copy of a per-CPU variable, or 0
// where the image has none of that name.
func (m *Machine) perCPUVar(c *cpu, t kimage.PerCPU, name string, off int64) x86.Addr {
	s := m.src.Lookup(name)
	if len(s) != 1 || !s[0].Addr.In(t.Start, t.Start.Add(int64(t.Size))) {
		return 0
	}
	return (s[0].Addr + c.gs).Add(off)
}

func (m *Machine) putPerCPU(c *cpu, t kimage.PerCPU, name string, off int64, b []byte) {
	if at := m.perCPUVar(c, t, name, off); at != 0 {
		// It fails for a variable at the very end of the area, which is then left.
		_ = m.WriteMem(at, b)
	}
}
