package process

import (
	"bytes"
	"fmt"
	"slices"
	"sort"
	"strings"

	"kprobelab/errno"
	"kprobelab/internal/bounded"
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
	// File and Offset are the mapped file and offset; File is nil for anonymous memory.
	File   *File
	Offset uint64
	// Name is the name in the maps file of memory without a file, "[stack]" or "".
	Name string
	// Alone: a forked process does not inherit it (VM_DONTCOPY).
	Alone bool
	// shared holds the frames that all inheriting processes share; nil if each has its own.
	shared *frames
	// lazy: it has no pages. grown: it is the touched part of a lazy one.
	lazy, grown bool
}

// FileOffset returns the offset in its file of one of its addresses.
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

// The layout of a kernel without ASLR, except that the stack is in the gap that the machine's own
// user memory leaves.
const (
	userTop            = x86.UserEnd
	stackTop  x86.Addr = 0x7fffffe00000
	stackSize          = 8 << 20
	mapTop    x86.Addr = 0x7ffff7fff000
	mapSize            = 512 << 20
	dynBase   x86.Addr = 0x555555554000
	lowest    x86.Addr = 0x10000 // vm.mmap_min_addr
	breakRoom          = 64 << 20
	// XOLHint is the address at which the kernel wants the XOL area: the last page.
	XOLHint = userTop - PageSize
)

// Space is an address space (mm_struct). Spaces take turns in the machine's memory: see ram.
type Space struct {
	*ram
	users int        // processes
	maps  []*Mapping // sorted, apart
	// kept holds the known contents of its pages. poked are the pages that may differ from them
	// although the program cannot write them.
	kept  frames
	poked map[x86.Addr]struct{}
	// start and end bound the heap, which brk moves; end may not pass limit.
	start, end, limit x86.Addr
}

// At returns the mapping of an address, nil if there is none.
func (s *Space) At(a x86.Addr) *Mapping {
	i := s.after(a)
	if i < len(s.maps) && s.maps[i].Contains(a) {
		return s.maps[i]
	}
	return nil
}

// Maps lists the mappings by address.
func (s *Space) Maps() []Mapping {
	list := make([]Mapping, len(s.maps))
	for i, v := range s.maps {
		list[i] = *v
	}
	return list
}

// Map maps v.Range with its file's content, in place of earlier mappings.
func (s *Space) Map(v Mapping) (*Mapping, error) {
	n := v.Len() / PageSize
	if v.Start%PageSize != 0 || v.Len()%PageSize != 0 || n == 0 || v.Start < lowest || v.End > userTop || v.End < v.Start {
		return nil, errno.EINVAL
	}
	if v.lazy {
		n = 0
	}
	if s.pages+n > s.most || len(s.maps) >= bounded.Mappings {
		return nil, errno.ENOMEM
	}
	if err := s.Unmap(v.Range); err != nil {
		return nil, err
	}
	if err := s.fill(&v); err != nil {
		return nil, err
	}
	s.insert(&v)
	s.pages += n
	return &v, nil
}

// insert puts a mapping in its place.
func (s *Space) insert(v *Mapping) {
	i := s.before(v.End)
	s.maps = slices.Insert(s.maps, i, v)
}

// fill gives a mapping's pages their content: the file's bytes, and zeros.
func (s *Space) fill(v *Mapping) error {
	if v.lazy {
		return nil
	}
	if s.in != s {
		for p := v.Start; p < v.End; p += PageSize {
			s.kept[p] = v.content(p)
		}
		return nil
	}
	return s.lay(v, func(write func(x86.Addr, []byte) error) error {
		for p := v.Start; p < v.End; p += PageSize {
			_, again := s.used[p]
			s.used[p] = struct{}{}
			if !again {
				continue
			}
			if err := write(p, zeros[:]); err != nil {
				return err
			}
		}
		if v.File == nil || v.Offset >= uint64(len(v.File.Data)) {
			return nil
		}
		b := v.File.Data[v.Offset:]
		return write(v.Start, b[:min(uint64(len(b)), v.Len())])
	})
}

// lay gives a mapping's pages their attributes, and has put write into them. Attributes are taken from
// pages only where the mapping can neither be written nor executed (machine.SetPages).
func (s *Space) lay(v *Mapping, put func(write func(x86.Addr, []byte) error) error) error {
	write, attr := s.m.WriteMem, attributes(v.Prot)
	switch {
	case v.Prot&ProtWrite != 0:
	case v.Prot&ProtExec != 0:
		write = s.m.PokeText
	default:
		attr = machine.AttrR | machine.AttrW
	}
	const window = 64 << 20
	for at := v.Start; at < v.End; at = at&^(window-1) + window {
		if s.m.Extend(at) != nil {
			return errno.ENOMEM
		}
	}
	if err := s.m.SetPages(v.Range, attr); err != nil {
		return errno.ENOMEM // outside the machine's windows
	}
	if err := put(write); err != nil || attr == attributes(v.Prot) {
		return err
	}
	return s.m.SetPages(v.Range, attributes(v.Prot))
}

var zeros [PageSize]byte

// attributes returns the attributes of pages: executable or writable pages are readable.
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

// Unmap removes the mappings of a range, if it has any.
func (s *Space) Unmap(r x86.Range) error {
	list, err := s.split(r)
	if err != nil {
		return err
	}
	for _, v := range list {
		if v.lazy {
			continue
		}
		if v.shared != nil && s.in == s {
			if err := s.captureMapping(v); err != nil {
				return err
			}
			s.forgetShared(v)
		}
		if err := s.release(v); err != nil {
			return err
		}
		s.pages -= v.Len() / PageSize
		for p := v.Start; p < v.End && len(s.kept) > 0; p += PageSize {
			delete(s.kept, p)
			delete(s.poked, p)
		}
	}
	s.maps = slices.Delete(s.maps, s.after(r.Start), max(s.after(r.Start), s.before(r.End)))
	return nil
}

// release takes the pages of a mapping away; the host has their memory back.
func (s *Space) release(v *Mapping) error {
	if s.in != s {
		return nil
	}
	for p := v.Start; p < v.End; p += PageSize {
		delete(s.used, p)
	}
	return s.m.DropPages(v.Range)
}

// protect is mprotect of a range that is mapped throughout.
func (s *Space) protect(r x86.Range, prot int) error {
	list, err := s.split(r)
	if err != nil {
		return err
	}
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
		if v.lazy {
			v.Prot = prot
			continue
		}
		if err := s.attributes(v.Range, prot); err != nil {
			return err
		}
		if v.Prot&ProtWrite != 0 {
			s.changed(v.Range)
		}
		v.Prot = prot
	}
	s.join()
	return nil
}

// split is cut for a range that the program chose: it may make two mappings more, as far as there may be more.
func (s *Space) split(r x86.Range) ([]*Mapping, error) {
	if len(s.maps)+2 > bounded.Mappings && (s.inside(r.Start) || s.inside(r.End)) {
		return nil, errno.ENOMEM
	}
	return s.cut(r), nil
}

// inside reports whether an address is in a mapping, and is not its start.
func (s *Space) inside(a x86.Addr) bool {
	v := s.At(a)
	return v != nil && v.Start != a
}

// cut makes mappings begin and end where a range does, and lists those in it.
func (s *Space) cut(r x86.Range) []*Mapping {
	for _, at := range []x86.Addr{r.Start, r.End} {
		i := s.after(at)
		if i == len(s.maps) || s.maps[i].Start >= at {
			continue
		}
		first := s.maps[i]
		second := *first
		second.Start, second.Offset = at, first.FileOffset(at)
		if second.File == nil {
			second.Offset = 0
		}
		first.End = at
		s.maps = slices.Insert(s.maps, i+1, &second)
	}
	from := s.after(r.Start)
	return slices.Clone(s.maps[from:max(from, s.before(r.End))])
}

// after returns the index of the first mapping that ends after an address.
func (s *Space) after(a x86.Addr) int {
	return sort.Search(len(s.maps), func(i int) bool { return s.maps[i].End > a })
}

func (s *Space) before(a x86.Addr) int {
	return sort.Search(len(s.maps), func(i int) bool { return s.maps[i].Start >= a })
}

// join merges equal neighbours, so that their number stays small.
func (s *Space) join() {
	out := s.maps[:0]
	for _, v := range s.maps {
		if n := len(out); n > 0 {
			p := out[n-1]
			if p.End == v.Start && p.Prot == v.Prot && p.File == v.File && p.Name == v.Name && p.shared == v.shared && p.Alone == v.Alone && p.lazy == v.lazy && p.grown == v.grown && (v.File == nil || p.FileOffset(v.Start) == v.Offset) {
				p.End = v.End
				continue
			}
		}
		out = append(out, v)
	}
	s.maps = out
}

// roomIn finds n bytes that are free, as high as possible from a floor to a top.
func (s *Space) roomIn(n uint64, bottom, top x86.Addr) (x86.Range, error) {
	end := top
	for i := len(s.maps) - 1; i >= -1; i-- {
		floor := bottom
		if i >= 0 {
			if s.maps[i].Start >= top {
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
func (s *Space) MapFree(hint x86.Addr, v Mapping, n uint64) (*Mapping, error) {
	if n == 0 || n > uint64(userTop) {
		return nil, errno.ENOMEM
	}
	n = uint64(pageUp(x86.Addr(n)))
	v.Range = x86.Range{Start: pageDown(hint), End: pageDown(hint) + x86.Addr(n)}
	if hint < lowest || hint > userTop || v.End > userTop || !s.free(v.Range) {
		var err error
		if v.Range, err = s.roomFor(n); err != nil {
			return nil, err
		}
	}
	v.lazy = v.lazily()
	return s.Map(v)
}

// FreeAround are the free pages that are nearest to an address, one on each side, the nearest first
// (vm_unmapped_area up and down).
func (s *Space) FreeAround(a x86.Addr) []x86.Addr {
	up, down := pageUp(a), pageDown(a)-PageSize
	for v := s.At(up); v != nil; v = s.At(up) {
		up = v.End
	}
	for v := s.At(down); v != nil; v = s.At(down) {
		down = v.Start - PageSize
	}
	if a-down < up-a {
		return []x86.Addr{down, up}
	}
	return []x86.Addr{up, down}
}

func (s *Space) free(r x86.Range) bool {
	i := s.after(r.Start)
	return i == len(s.maps) || s.maps[i].Start >= r.End
}

// setBreak is brk: it returns the end of the heap afterwards.
func (s *Space) setBreak(to x86.Addr) x86.Addr {
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

// Read, Write and Poke are the kernel's accesses: Read and Write fail where the program's own
// would, Poke writes executable pages.
func (s *Space) Read(a x86.Addr, b []byte) error {
	if s.in != s {
		return s.apart(a, b, 0, func(f *frame, at int, part []byte) *frame { copy(part, f.bytes()[at:]); return f })
	}
	if a >= userTop || s.m.ReadMem(a, b) != nil && (s.present(a, len(b), 0) != nil || s.m.ReadMem(a, b) != nil) {
		return errno.EFAULT
	}
	return nil
}

// Write is an access of the kernel's.
func (s *Space) Write(a x86.Addr, b []byte) error {
	if s.in != s {
		return s.apart(a, b, ProtWrite, (*frame).with)
	}
	if a >= userTop || s.m.WriteMem(a, b) != nil && (s.present(a, len(b), ProtWrite) != nil || s.m.WriteMem(a, b) != nil) {
		return errno.EFAULT
	}
	return nil
}

// Poke changes the process's own copy of its text.
func (s *Space) Poke(a x86.Addr, b []byte) error {
	v := s.At(a)
	r := x86.Range{Start: pageDown(a), End: pageUp(a.Add(int64(len(b))))}
	switch {
	case v == nil || a.Add(int64(len(b))) > v.End:
		return errno.EFAULT
	case s.in != s:
		return s.apart(a, b, 0, (*frame).with)
	case v.Prot&ProtExec != 0:
		s.changed(r)
		return s.m.PokeText(a, b)
	case v.Prot&ProtWrite != 0:
		return s.m.WriteMem(a, b)
	}
	if err := s.m.SetPages(r, machine.AttrR|machine.AttrW); err != nil {
		return err
	}
	s.changed(r)
	defer func() {
		_ = s.m.SetPages(r, attributes(v.Prot)) // it was possible before
	}()
	return s.m.WriteMem(a, b)
}

// text is a string of the program's, up to most bytes.
func (s *Space) text(a x86.Addr, most int) (string, error) {
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
