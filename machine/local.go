package machine

import (
	"unsafe"

	"kprobelab/x86"
)

// Every CPU has a page of variables for code that extends the guest. It follows the CPU's copy of
// the image's per-CPU area, at the same offset from each GS base.

// LocalOffset returns the distance of a CPU's own page from its GS base.
func (m *Machine) LocalOffset() x86.Addr { return m.cpus[0].local - m.cpus[0].gs }

// Local returns the words of a CPU's own page.
func (m *Machine) Local(cpu int) []uint64 { return m.cpus[cpu].words }

// layLocal gives c its page, which follows its area.
func (m *Machine) layLocal(c *cpu, at x86.Addr) error {
	h, err := m.engine.Bytes(at, PageSize, AttrW)
	if err != nil {
		return err
	}
	c.local, c.words = at, unsafe.Slice((*uint64)(unsafe.Pointer(&h[0])), PageSize/8)
	return nil
}

// CallGuest is CallAddr for two arguments.
func (m *Machine) CallGuest(fn x86.Addr, a, b uint64) (uint64, error) { return m.CallAddr(fn, a, b) }
