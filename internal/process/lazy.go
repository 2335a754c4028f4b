package process

import (
	"errors"

	"kprobelab/errno"
	"kprobelab/machine"
	"kprobelab/x86"
)

// Reserved address space is not memory: a mapping of anonymous memory that is large or inaccessible
// is lazy. It has no pages. Where one is touched, the part of the mapping around it is cut out, and
// is a mapping with pages from then on. So runtimes that reserve gigabytes (Go's) or terabytes
// (ASan's) and touch little of it run, and the bound on memory counts touched memory.

const (
	// lazyFrom is the length, in bytes, from which on a mapping is lazy.
	lazyFrom = 128 << 10
	// lazyPart is the size and the alignment, in bytes, of the part that gets memory when a page of it is touched.
	lazyPart = 16 * PageSize
	// bigMapping is the length, in bytes, from which on a mapping is put apart, so that other mappings keep the
	// room that the machine has from the beginning.
	bigMapping = 16 << 20
	// lowTop is the end of the address range for big mappings.
	lowTop = mapTop - mapSize
	// lowFloor is the start of that range.
	lowFloor x86.Addr = 0x100000000
)

// errTouched ends a run whose processes use too much memory, as the kernel's OOM killer would.
var errTouched = errors.New("the program uses more memory than a program may (256 MB, all processes together)")

// lazily decides whether a new mapping is lazy.
func (v *Mapping) lazily() bool {
	return v.File == nil && v.shared == nil && (v.Prot == 0 || v.Len() >= lazyFrom)
}

// populate gives a lazy mapping's pages around an address memory.
func (s *Space) populate(a x86.Addr) error {
	v := s.At(a)
	if v == nil || !v.lazy {
		return errno.EFAULT
	}
	part := x86.Range{Start: a &^ (lazyPart - 1), End: a&^(lazyPart-1) + lazyPart}
	part.Start, part.End = max(part.Start, v.Start), min(part.End, v.End)
	n := part.Len() / PageSize
	if s.pages+n > s.most {
		return errTouched
	}
	for _, p := range s.cut(part) {
		p.lazy = false
		if err := s.fill(p); err != nil {
			p.lazy = true
			return err
		}
		p.grown = true
	}
	s.pages += n
	s.join()
	return nil
}

// touched is a page fault at an address that the program may touch: it goes on once there is memory.
func (p *Process) touched(at x86.Addr, access machine.Access, regs *x86.PtRegs) bool {
	v := p.At(at)
	if at >= userTop || v == nil || !v.lazy {
		return false
	}
	need := map[machine.Access]int{machine.AccessWrite: ProtWrite, machine.AccessFetch: ProtExec}[access]
	if v.Prot == 0 || v.Prot&need != need {
		return false
	}
	switch err := p.populate(at); {
	case errors.Is(err, errTouched):
		p.giveUp(err, regs)
		return true
	case err != nil:
		return false
	}
	return true
}

// present gives the lazy pages of a range memory, before the kernel accesses it; need is the
// access's protection.
func (s *Space) present(a x86.Addr, n int, need int) error {
	end := a.Add(int64(n))
	if end < a || end > userTop {
		return errno.EFAULT
	}
	for a < end {
		v := s.At(a)
		switch {
		case v == nil || v.Prot == 0 || v.Prot&need != need:
			return errno.EFAULT
		case v.lazy:
			if err := s.populate(a); err != nil {
				return errno.EFAULT
			}
			v = s.At(a)
		}
		a = v.End
	}
	return nil
}

// forget makes private anonymous memory zero again (MADV_DONTNEED): it is lazy from then on.
func (s *Space) forget(r x86.Range) error {
	list, err := s.split(r)
	if err != nil {
		return err
	}
	for _, v := range list {
		switch {
		case v.lazy || v.shared != nil:
			continue
		case v.File != nil:
			if v.Prot&ProtWrite == 0 {
				continue // it is as the file has it
			}
			w := *v
			if _, err := s.Map(w); err != nil {
				return err
			}
			continue
		}
		w := *v
		if err := s.Unmap(v.Range); err != nil {
			return err
		}
		w.lazy, w.grown = true, false
		s.insert(&w)
	}
	s.join()
	return nil
}

// Flags of mremap.
const (
	remapMayMove   = 1
	remapFixed     = 2
	remapDontUnmap = 4
)

func (p *Process) mremap(r *x86.PtRegs) (uint64, error) {
	old, oldLen, newLen, flags := x86.Addr(r.DI), uint64(pageUp(x86.Addr(r.SI))), uint64(pageUp(x86.Addr(r.DX))), r.R10
	v := p.At(old)
	switch {
	case old%PageSize != 0, newLen == 0, newLen > uint64(userTop), oldLen > uint64(userTop), flags&^(remapMayMove|remapFixed) != 0,
		flags&remapFixed != 0 && flags&remapMayMove == 0, oldLen == 0:
		return 0, errno.EINVAL // and MREMAP_DONTUNMAP, which is of no use here
	case v == nil:
		return 0, errno.EFAULT
	}
	was := x86.Range{Start: old, End: old.Add(int64(oldLen))}
	if flags&remapFixed != 0 {
		to := x86.Range{Start: x86.Addr(r.R8), End: x86.Addr(r.R8).Add(int64(newLen))}
		if to.Start%PageSize != 0 || to.End < to.Start || to.End > userTop || to.Start < lowest || to.Overlaps(was) {
			return 0, errno.EINVAL
		}
		return p.move(was, to)
	}
	if newLen <= oldLen {
		if newLen < oldLen {
			return r.DI, p.Unmap(x86.Range{Start: old.Add(int64(newLen)), End: was.End})
		}
		return r.DI, nil
	}
	last := p.At(was.End - 1)
	if last == nil {
		return 0, errno.EFAULT
	}
	more := x86.Range{Start: was.End, End: old.Add(int64(newLen))}
	if was.End == last.End && more.End <= userTop && p.free(more) && last.shared == nil {
		w := *last
		w.Range, w.Offset, w.lazy, w.grown = more, last.FileOffset(more.Start), false, false
		if w.lazy = w.lazily() || last.lazy; w.File == nil {
			w.Offset = 0
		}
		if _, err := p.Map(w); err == nil {
			p.join()
			return r.DI, nil
		}
	}
	if flags&remapMayMove == 0 {
		return 0, errno.ENOMEM
	}
	to, err := p.roomFor(newLen)
	if err != nil {
		return 0, err
	}
	return p.move(was, to)
}

// move moves the mappings of a range to another range. If that is longer, the last mapping grows.
func (p *Process) move(was, to x86.Range) (uint64, error) {
	list, err := p.split(x86.Range{Start: was.Start, End: min(was.End, was.Start.Add(int64(to.Len())))})
	if err != nil {
		return 0, err
	}
	at := was.Start
	for _, v := range list {
		if v.Start != at || v.shared != nil {
			return 0, errno.EFAULT
		}
		at = v.End
	}
	if len(list) == 0 || at < min(was.End, was.Start.Add(int64(to.Len()))) {
		return 0, errno.EFAULT
	}
	for i, v := range list {
		w := *v
		w.Start = to.Start.Add(v.Start.Sub(was.Start))
		w.End = w.Start.Add(v.End.Sub(v.Start))
		if i == len(list)-1 {
			w.End = to.End
		}
		if _, err := p.Map(w); err != nil {
			return 0, errors.Join(err, p.Unmap(to)) // no page remains in two places
		}
		if v.lazy {
			continue
		}
		b := make([]byte, PageSize)
		for a := v.Start; a < v.End; a += PageSize {
			// Both exist; a page that cannot be written has its file's content.
			if p.Read(a, b) == nil {
				_ = p.Write(w.Start.Add(a.Sub(v.Start)), b)
			}
		}
	}
	p.join()
	return uint64(to.Start), p.Unmap(was)
}

// roomFor finds n bytes that are free: where the machine has memory, or further below for big mappings.
func (s *Space) roomFor(n uint64) (x86.Range, error) {
	if n < bigMapping {
		if r, err := s.roomIn(n, lowTop, mapTop); err == nil {
			return r, nil
		}
	}
	return s.roomIn(n, lowFloor, lowTop)
}
