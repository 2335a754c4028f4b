package machine

import (
	"fmt"

	"kprobelab/errno"
	"kprobelab/x86"
)

// SetPages gives the pages of a range these attributes in place of those that they have: of
// AttrR, AttrW and AttrX; 0 unmaps them. What they hold stays. The range is part of a window of the
// image's (Windowed), of a segment or of user memory. It is for a host that is the kernel of a program.
// Int3 and Debug of the receiver of traps may map pages, not take attributes from them.
func (m *Machine) SetPages(r x86.Range, attr byte) error {
	if err := m.ours(); err != nil {
		return err
	}
	if m.gone {
		return ErrClosed
	}
	if r.Start%PageSize != 0 || r.End%PageSize != 0 || attr&^(AttrR|AttrW|AttrX) != 0 || !m.reserved(r) {
		return fmt.Errorf("pages from %s to %s: %w", r.Start, r.End, errno.EINVAL)
	}
	m.anew()
	executable := m.engine.Unmap(r)
	m.engine.Allow(r, attr)
	if executable || attr&AttrX != 0 {
		for _, c := range m.cpus {
			m.drop(c, r.Start, int(r.Len()))
		}
	}
	return nil
}

// reserved reports whether a range is part of one region.
func (m *Machine) reserved(r x86.Range) bool {
	for _, o := range m.regions {
		if r.Start < r.End && o.Start <= r.Start && r.End <= o.End {
			return true
		}
	}
	return false
}
