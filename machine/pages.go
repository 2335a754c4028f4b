package machine

import (
	"fmt"
	"slices"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
	"kprobelab/x86"
)

// SetPages replaces the attributes of a range's pages by attr, a set of AttrR, AttrW and AttrX; 0
// unmaps the pages. Their content stays. The range lies in windows of the image (Windowed), of
// Extend, in segments or in user memory. SetPages is for a host that acts as the kernel of a
// program. Int3 and Debug of the receiver of traps may map pages, but not remove attributes.
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
	executable := m.engine.Unmap(r)
	m.engine.Allow(r, attr)
	if executable || attr&AttrX != 0 {
		for _, c := range m.cpus {
			m.drop(c, r.Start, int(r.Len()))
		}
	}
	return nil
}

// reserved reports whether all of a range is in regions.
func (m *Machine) reserved(r x86.Range) bool {
	for at := r.Start; at < r.End; {
		i := slices.IndexFunc(m.regions, func(o x86.Range) bool { return o.Contains(at) })
		if i < 0 {
			return false
		}
		at = m.regions[i].End
	}
	return r.Start < r.End
}

// windowSize is the size in bytes of a window that Extend makes, unless other regions leave less room.
const windowSize = 64 << 20

// Extend makes room for memory around an address of the lower half, like a window of the image: the
// host pays for a page when it is first used. There can be 128 such windows. Extend is for a host
// that acts as the kernel of a program, inside a fault; inside a trap of Int3 or Debug it may fail.
func (m *Machine) Extend(at x86.Addr) error {
	if err := m.ours(); err != nil {
		return err
	}
	r := x86.Range{Start: at &^ (windowSize - 1), End: at&^(windowSize-1) + windowSize}
	switch {
	case m.gone:
		return ErrClosed
	case at >= x86.UserEnd || m.booted != nil:
		return fmt.Errorf("room at %s: %w", at, errno.EINVAL)
	}
	r.End = min(r.End, x86.UserEnd)
	for _, o := range m.regions {
		switch {
		case o.Contains(at):
			return nil
		case o.End <= at:
			r.Start = max(r.Start, o.End)
		default:
			r.End = min(r.End, o.Start)
		}
	}
	if m.extended == bounded.Windows {
		return fmt.Errorf("room at %s, and %d windows before it: %w", at, bounded.Windows, ErrNoMemory)
	}
	m.extended++
	_, err := m.reserve(r.Start, r.End)
	return err
}

// DropPages unmaps the pages of a range, and makes them zero for when they are mapped again: the host has their
// memory back. The range is as of SetPages.
func (m *Machine) DropPages(r x86.Range) error {
	if err := m.SetPages(r, 0); err != nil {
		return err
	}
	m.engine.Discard(r)
	return nil
}
