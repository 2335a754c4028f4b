package process

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strings"

	"kprobelab/errno"
	"kprobelab/machine"
	"kprobelab/x86"
)

// Protections of a mapping (PROT_READ, …).
const (
	ProtRead = 1 << iota
	ProtWrite
	ProtExec
)

// Mapping is a range of memory that was mapped alike (a vm_area_struct).
type Mapping struct {
	x86.Range
	Prot int
	// File and Offset are what it shows; nil for anonymous memory.
	File   *File
	Offset uint64
	// Name is what maps shows for memory without a file, "[stack]" or "".
	Name string
}

// FileOffset is the offset in its file of an address of it.
func (v *Mapping) FileOffset(a x86.Addr) uint64 { return v.Offset + uint64(a-v.Start) }

// String is a line of /proc/PID/maps, but for the device and inode.
func (v *Mapping) String() string {
	prot := []byte("---p")
	for i, c := range []byte("rwx") {
		if v.Prot&(1<<i) != 0 {
			prot[i] = c
		}
	}
	name := v.Name
	if v.File != nil {
		name = v.File.Name
	}
	return strings.TrimRight(fmt.Sprintf("%x-%x %s %08x %s", uint64(v.Start), uint64(v.End), prot, v.Offset, name), " ")
}

// Where things are, as a kernel without ASLR has them; the stack is where the machine's own
// user memory leaves room.
const (
	userTop   x86.Addr = 0x7ffffffff000
	stackTop  x86.Addr = 0x7fffffe00000
	stackSize          = 8 << 20
	mapTop    x86.Addr = 0x7ffff7fff000
	mapSize            = 512 << 20
	dynBase   x86.Addr = 0x555555554000
	lowest    x86.Addr = 0x10000 // vm.mmap_min_addr
	breakRoom          = 64 << 20
	// XOLHint is where the kernel wants the XOL area: the last page.
	XOLHint = userTop - PageSize
	// maxMappings is vm.max_map_count, for less.
	maxMappings = 4096
)

// memory is the address space.
type memory struct {
	m    *machine.Machine
	maps []*Mapping // sorted, apart
	// used are the pages that were ever mapped: they may hold something.
	used map[x86.Addr]struct{}
	// pages is how many are mapped, most how many may be.
	pages, most uint64
	// start and end are of the heap that brk moves; it may not pass limit.
	start, end, limit x86.Addr
}

// At is the mapping of an address, nil where there is none.
func (s *memory) At(a x86.Addr) *Mapping {
	i := sort.Search(len(s.maps), func(i int) bool { return s.maps[i].End > a })
	if i < len(s.maps) && s.maps[i].Contains(a) {
		return s.maps[i]
	}
	return nil
}

// Maps lists the mappings by address.
func (s *memory) Maps() []Mapping {
	list := make([]Mapping, len(s.maps))
	for i, v := range s.maps {
		list[i] = *v
	}
	return list
}

// Map maps v.Range, in place of what is there, with what its file has.
func (s *memory) Map(v Mapping) (*Mapping, error) {
	n := v.Len() / PageSize
	if v.Start%PageSize != 0 || v.Len()%PageSize != 0 || n == 0 || v.Start < lowest || v.End > userTop || v.End < v.Start {
		return nil, errno.EINVAL
	}
	if s.pages+n > s.most || len(s.maps) >= maxMappings {
		return nil, errno.ENOMEM
	}
	if err := s.Unmap(v.Range); err != nil {
		return nil, err
	}
	if err := s.fill(&v); err != nil {
		return nil, err
	}
	if err := s.m.SetPages(v.Range, attributes(v.Prot)); err != nil {
		return nil, errno.ENOMEM // outside the machine's windows
	}
	i := sort.Search(len(s.maps), func(i int) bool { return s.maps[i].Start >= v.End })
	s.maps = slices.Insert(s.maps, i, &v)
	s.pages += n
	return s.maps[i], nil
}

// fill gives a mapping's pages their content: what the file has, and zeros.
func (s *memory) fill(v *Mapping) error {
	var old []x86.Addr
	for p := v.Start; p < v.End; p += PageSize {
		if _, again := s.used[p]; again {
			old = append(old, p)
		}
		s.used[p] = struct{}{}
	}
	if len(old) == 0 && v.File == nil {
		return nil
	}
	if err := s.m.SetPages(v.Range, machine.AttrR|machine.AttrW); err != nil {
		return errno.ENOMEM // outside the machine's windows
	}
	for _, p := range old {
		if err := s.m.WriteMem(p, zeros[:]); err != nil {
			return err
		}
	}
	if v.File == nil || v.Offset >= uint64(len(v.File.Data)) {
		return nil
	}
	b := v.File.Data[v.Offset:]
	return s.m.WriteMem(v.Start, b[:min(uint64(len(b)), v.Len())])
}

var zeros [PageSize]byte

// attributes of pages: what can be executed or written can be read.
func attributes(prot int) byte {
	attr := byte(0)
	if prot != 0 {
		attr = machine.AttrR
	}
	if prot&ProtWrite != 0 {
		attr |= machine.AttrW
	}
	if prot&ProtExec != 0 {
		attr |= machine.AttrX
	}
	return attr
}

// Unmap takes a range away, whatever of it is mapped.
func (s *memory) Unmap(r x86.Range) error {
	for _, v := range s.cut(r) {
		if err := s.m.SetPages(v.Range, 0); err != nil {
			return err
		}
		s.pages -= v.Len() / PageSize
	}
	s.maps = slices.DeleteFunc(s.maps, func(v *Mapping) bool { return v.Overlaps(r) })
	return nil
}

// protect is mprotect of a range that is mapped throughout.
func (s *memory) protect(r x86.Range, prot int) error {
	list := s.cut(r)
	at := r.Start
	for _, v := range list {
		if v.Start != at {
			return errno.ENOMEM
		}
		at = v.End
	}
	if at != r.End {
		return errno.ENOMEM
	}
	for _, v := range list {
		if err := s.m.SetPages(v.Range, attributes(prot)); err != nil {
			return err
		}
		v.Prot = prot
	}
	s.join()
	return nil
}

// cut makes mappings begin and end where a range does, and lists those in it.
func (s *memory) cut(r x86.Range) []*Mapping {
	var out, in []*Mapping
	for _, v := range s.maps {
		rest := v
		for _, at := range []x86.Addr{r.Start, r.End} {
			if at <= rest.Start || rest.End <= at {
				continue
			}
			second := *rest
			second.Start, second.Offset = at, second.FileOffset(at)
			if second.File == nil {
				second.Offset = 0
			}
			rest.End = at
			out = append(out, rest)
			if rest.Overlaps(r) {
				in = append(in, rest)
			}
			rest = &second
		}
		out = append(out, rest)
		if rest.Overlaps(r) {
			in = append(in, rest)
		}
	}
	s.maps = out
	return in
}

// join makes one of neighbours that are alike, so that their number stays small.
func (s *memory) join() {
	out := s.maps[:0]
	for _, v := range s.maps {
		if n := len(out); n > 0 {
			p := out[n-1]
			if p.End == v.Start && p.Prot == v.Prot && p.File == v.File && p.Name == v.Name && (v.File == nil || p.FileOffset(v.Start) == v.Offset) {
				p.End = v.End
				continue
			}
		}
		out = append(out, v)
	}
	s.maps = out
}

// room finds n bytes that are free, as high as possible below mapTop.
func (s *memory) room(n uint64) (x86.Range, error) {
	end := mapTop
	for i := len(s.maps) - 1; i >= -1; i-- {
		floor := mapTop - mapSize
		if i >= 0 {
			if s.maps[i].Start >= mapTop {
				continue
			}
			floor = max(floor, s.maps[i].End)
		}
		if floor < end && uint64(end-floor) >= n {
			return x86.Range{Start: end - x86.Addr(n), End: end}, nil
		}
		if i >= 0 {
			end = min(end, s.maps[i].Start)
		}
	}
	return x86.Range{}, errno.ENOMEM
}

// MapFree maps n bytes of memory where they fit; hint is tried first.
func (s *memory) MapFree(hint x86.Addr, v Mapping, n uint64) (*Mapping, error) {
	n = uint64(pageUp(x86.Addr(n)))
	if n == 0 || n > mapSize {
		return nil, errno.ENOMEM
	}
	v.Range = x86.Range{Start: pageDown(hint), End: pageDown(hint) + x86.Addr(n)}
	if hint < lowest || v.End > userTop || !s.free(v.Range) {
		var err error
		if v.Range, err = s.room(n); err != nil {
			return nil, err
		}
	}
	return s.Map(v)
}

func (s *memory) free(r x86.Range) bool {
	return !slices.ContainsFunc(s.maps, func(v *Mapping) bool { return v.Overlaps(r) })
}

// setBreak is brk: it says where the heap ends then.
func (s *memory) setBreak(to x86.Addr) x86.Addr {
	if to < s.start || to > s.limit {
		return s.end
	}
	from, until := pageUp(s.end), pageUp(to)
	switch {
	case until > from:
		r := x86.Range{Start: from, End: until}
		if !s.free(r) {
			return s.end
		}
		if _, err := s.Map(Mapping{Range: r, Prot: ProtRead | ProtWrite, Name: "[heap]"}); err != nil {
			return s.end
		}
		s.join()
	case until < from:
		if s.Unmap(x86.Range{Start: until, End: from}) != nil {
			return s.end
		}
	}
	s.end = to
	return to
}

// Read, Write and Poke are the kernel's accesses: Read and Write fail where the
// program's own would, Poke writes what can be executed.
func (s *memory) Read(a x86.Addr, b []byte) error {
	if a >= userTop || s.m.ReadMem(a, b) != nil {
		return errno.EFAULT
	}
	return nil
}

// Write is an access of the kernel's.
func (s *memory) Write(a x86.Addr, b []byte) error {
	if a >= userTop || s.m.WriteMem(a, b) != nil {
		return errno.EFAULT
	}
	return nil
}

// Poke changes the process's own copy of its text.
func (s *memory) Poke(a x86.Addr, b []byte) error {
	v := s.At(a)
	switch {
	case v == nil || a.Add(int64(len(b))) > v.End:
		return errno.EFAULT
	case v.Prot&ProtExec != 0:
		return s.m.PokeText(a, b)
	case v.Prot&ProtWrite != 0:
		return s.m.WriteMem(a, b)
	}
	if err := s.m.SetPages(x86.Range{Start: pageDown(a), End: pageUp(a.Add(int64(len(b))))}, machine.AttrR|machine.AttrW); err != nil {
		return err
	}
	defer func() {
		_ = s.m.SetPages(x86.Range{Start: pageDown(a), End: pageUp(a.Add(int64(len(b))))}, attributes(v.Prot)) // it was possible before
	}()
	return s.m.WriteMem(a, b)
}

// text is a string of the program's, up to most bytes.
func (s *memory) text(a x86.Addr, most int) (string, error) {
	var out []byte
	for len(out) < most {
		b := make([]byte, min(PageSize-int(a%PageSize), most-len(out)))
		if err := s.Read(a, b); err != nil {
			return "", err
		}
		if i := bytes.IndexByte(b, 0); i >= 0 {
			return string(append(out, b[:i]...)), nil
		}
		out = append(out, b...)
		a = a.Add(int64(len(b)))
	}
	return "", errno.EINVAL
}
