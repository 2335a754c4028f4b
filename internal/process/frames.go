package process

import (
	"bytes"
	"maps"
	"slices"

	"kprobelab/errno"
	"kprobelab/machine"
	"kprobelab/x86"
)

// ram is the machine's memory, which holds the pages of one address space at a time. The pages of
// the other spaces are kept as frames.
type ram struct {
	m  *machine.Machine
	in *Space // the space whose pages are in the machine; nil if none is
	// spaces lists the address spaces of the processes.
	spaces []*Space
	// used is the set of pages that may be nonzero: mapped pages, and pages of waiting spaces.
	used map[x86.Addr]struct{}
	// pages is the number of mapped pages in all spaces, most its bound.
	pages, most uint64
}

// frame is the content of a page; nil is all zeros. It never changes, so spaces can share it.
type frame [PageSize]byte

func (f *frame) bytes() []byte {
	if f == nil {
		return zeros[:]
	}
	return f[:]
}

// with returns a copy of the frame with the bytes b from at on.
func (f *frame) with(at int, b []byte) *frame {
	n := new(frame)
	copy(n[:], f.bytes())
	copy(n[at:], b)
	return n
}

// frames maps addresses to the contents of pages.
type frames map[x86.Addr]*frame

func (r *ram) space() *Space {
	s := &Space{ram: r, users: 1, kept: frames{}, poked: map[x86.Addr]struct{}{}}
	r.spaces = append(r.spaces, s)
	return s
}

// content returns the initial content of a page of a mapping.
func (v *Mapping) content(p x86.Addr) *frame {
	if v.File == nil || v.FileOffset(p) >= uint64(len(v.File.Data)) {
		return nil
	}
	b := v.File.Data[v.FileOffset(p):]
	return (*frame)(nil).with(0, b[:min(len(b), PageSize)])
}

// frames returns the frames of a mapping: the shared ones, or the space's own.
func (s *Space) frames(v *Mapping) frames {
	if v.shared != nil {
		return *v.shared
	}
	return s.kept
}

// attributes sets the attributes of pages, if the space is the one in the machine.
func (s *Space) attributes(r x86.Range, prot int) error {
	if s.in != s {
		return nil
	}
	return s.m.SetPages(r, attributes(prot))
}

// changed records that pages may differ from the kept frames.
func (s *Space) changed(r x86.Range) {
	for p := r.Start; p < r.End && len(s.kept) > 0; p += PageSize {
		s.poked[p] = struct{}{}
	}
}

// apart accesses the memory of a space that is not in the machine.
func (s *Space) apart(a x86.Addr, b []byte, need int, access func(f *frame, at int, part []byte) *frame) error {
	if err := s.present(a, len(b), need); err != nil {
		return err
	}
	for len(b) > 0 {
		v := s.At(a)
		p, at := pageDown(a), int(a%PageSize)
		n := min(len(b), PageSize-at)
		list := s.frames(v)
		list[p] = access(list[p], at, b[:n])
		a, b = a.Add(int64(n)), b[n:]
	}
	return nil
}

// capture keeps the contents of all pages, as far as the space is the one in the machine.
func (s *Space) capture() error {
	if s.in != s {
		return nil
	}
	for _, v := range s.maps {
		if v.lazy || v.shared == nil && s.users == 0 {
			continue // no process can read it any more
		}
		if err := s.captureMapping(v); err != nil {
			return err
		}
		if s.users == 0 {
			s.forgetShared(v)
		}
	}
	clear(s.poked)
	return nil
}

// forgetShared drops the content of a shared mapping's pages, except pages that another space maps,
// too.
func (s *Space) forgetShared(v *Mapping) {
	var others []x86.Range
	for _, o := range s.spaces {
		for _, w := range o.maps {
			if o != s && w.shared == v.shared && w.Overlaps(v.Range) {
				others = append(others, w.Range)
			}
		}
	}
	for p := v.Start; p < v.End; p += PageSize {
		if !slices.ContainsFunc(others, func(r x86.Range) bool { return r.Contains(p) }) {
			delete(*v.shared, p)
		}
	}
}

func (s *Space) captureMapping(v *Mapping) error {
	if v.Prot == 0 {
		if err := s.m.SetPages(v.Range, machine.AttrR); err != nil {
			return err
		}
	}
	list := s.frames(v)
	var b frame
	for p := v.Start; p < v.End; p += PageSize {
		f, known := list[p]
		if _, poked := s.poked[p]; known && v.Prot&ProtWrite == 0 && !poked {
			continue
		}
		if err := s.m.ReadMem(p, b[:]); err != nil {
			return err
		}
		switch {
		case known && bytes.Equal(b[:], f.bytes()):
		case bytes.Equal(b[:], zeros[:]):
			list[p] = nil
		default:
			list[p] = f.with(0, b[:])
		}
	}
	if v.Prot == 0 {
		return s.m.SetPages(v.Range, 0)
	}
	return nil
}

// enter puts the space's pages into the machine, in place of another's. No code of the program's
// may be under way (machine.SetPages).
func (s *Space) enter() error {
	from := s.in
	if from == s {
		return nil
	}
	if from != nil {
		if err := from.capture(); err != nil {
			return err
		}
		for _, v := range from.maps {
			if err := from.leaves(v); err != nil {
				return err
			}
		}
		if from.users == 0 {
			from.maps = nil
		}
	}
	s.in = s
	for _, v := range s.maps {
		if v.lazy {
			continue
		}
		if err := s.bring(v, from); err != nil {
			return err
		}
	}
	return nil
}

// leaves takes a mapping's pages out of the machine; the pages of a space without processes are
// dropped.
func (s *Space) leaves(v *Mapping) error {
	switch {
	case v.lazy:
		return nil
	case s.users == 0:
		for p := v.Start; p < v.End; p += PageSize {
			delete(s.used, p)
		}
		return s.m.DropPages(v.Range)
	}
	return s.m.SetPages(v.Range, 0)
}

// bring writes a mapping's pages to the machine, except pages that are there from another space.
func (s *Space) bring(v *Mapping, from *Space) error {
	list := s.frames(v)
	return s.lay(v, func(write func(x86.Addr, []byte) error) error {
		for p := v.Start; p < v.End; p += PageSize {
			f := list[p]
			list[p] = f // a nil one is known, too
			_, used := s.used[p]
			s.used[p] = struct{}{}
			if f == nil && !used || from.holds(p, v, f) {
				continue
			}
			if err := write(p, f.bytes()); err != nil {
				return err
			}
		}
		return nil
	})
}

// holds reports whether the page p of space s has the frame f already, in memory that is shared
// or private as v's is. Then the page need not be written.
func (s *Space) holds(p x86.Addr, v *Mapping, f *frame) bool {
	if s == nil {
		return false
	}
	own := s.At(p)
	if own == nil || own.lazy || own.shared != v.shared || s.users == 0 {
		return false
	}
	g, known := s.frames(own)[p]
	return known && f == g
}

// fork makes a copy, which shares all pages until one of the two writes.
func (s *Space) fork() (*Space, error) {
	n := uint64(0)
	for _, v := range s.maps {
		n += v.pages()
	}
	if s.pages+n > s.most {
		return nil, errno.ENOMEM
	}
	if err := s.capture(); err != nil {
		return nil, err
	}
	c := s.space()
	c.kept = maps.Clone(s.kept)
	c.start, c.end, c.limit = s.start, s.end, s.limit
	for _, v := range s.maps {
		if v.Alone {
			for p := v.Start; p < v.End; p += PageSize {
				delete(c.kept, p)
			}
			continue
		}
		w := *v
		c.maps = append(c.maps, &w)
		s.pages += v.pages()
	}
	return c, nil
}

// pages returns the number of pages that a mapping has; a lazy mapping has none.
func (v *Mapping) pages() uint64 {
	if v.lazy {
		return 0
	}
	return v.Len() / PageSize
}

// leave is the end of a process in the space; it reports that it was the last. The machine keeps
// the pages until another space enters.
func (s *Space) leave() bool {
	if s.users--; s.users > 0 {
		return false
	}
	for _, v := range s.maps {
		s.pages -= v.pages()
	}
	s.spaces = slices.DeleteFunc(s.spaces, func(o *Space) bool { return o == s })
	s.kept, s.poked = frames{}, map[x86.Addr]struct{}{}
	return true
}
