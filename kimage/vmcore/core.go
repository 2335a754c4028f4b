package vmcore

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"kprobelab/internal/bounded"
	"kprobelab/internal/printable"
)

// PageSize is the size of a page of physical memory.
const PageSize = 4096

// Limits on the sizes in a header.
const (
	// maxPhys is the end of physical addresses (SDM Vol. 3, "Hierarchical Paging
	// Structures: an Overview").
	maxPhys = 1 << 52
)

// Range is a range of physical memory.
type Range struct {
	Phys, Size uint64
}

// End is the address after the last byte.
func (r Range) End() uint64 { return r.Phys + r.Size }

// Core is a dump that is open. It may be read concurrently.
type Core struct {
	name   string
	format string
	mem    memory
	ram    []Range
	cpus   []CPU
	files  []*os.File
	// held counts the bytes that all its spools take; most bounds them, 0 means bounded.DumpHeld.
	held, most int64
	// spilled is the size of its spools on a disk, in bytes; disk makes a file there, diskFile if it is nil.
	spilled int64
	disk    func() (*os.File, error)

	// note is VMCOREINFO, nil without; searched: memory was looked through for it.
	note     []byte
	searched sync.Once

	mapLock sync.Mutex
	pieces  []Piece
}

// memory gives the content of physical memory.
type memory interface {
	// read fills b, which lies in one page of RAM.
	read(phys uint64, b []byte) error
	// present is nil for a page of RAM that read can read.
	present(phys uint64) error
	// pieces are the parts of RAM as they can be mapped, nil if they cannot.
	pieces() []Piece
}

// Open opens a dump. A fault in the file's content is a *FormatError. The caller may
// Close the Core; a Core without references closes itself.
func Open(path string) (*Core, error) {
	f, err := bounded.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = inFile(bad("a regular file is wanted"), path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	c := &Core{name: path, files: []*os.File{f}}
	return c.open(source{f, st.Size(), f})
}

// FromReader opens a dump of size bytes; name is for messages.
func FromReader(name string, r io.ReaderAt, size int64) (*Core, error) {
	return (&Core{name: name}).open(source{ReaderAt: r, size: size})
}

// source is the file that is read.
type source struct {
	io.ReaderAt
	size int64
	// file is the file that can be mapped, nil if none can.
	file *os.File
}

// bytes are n bytes at off. A source that ends before them is cut off.
func (s source) bytes(off, n int64) ([]byte, error) {
	if err := s.within(off, n); err != nil {
		return nil, err
	}
	b := make([]byte, n)
	_, err := s.ReadAt(b, off)
	if err == io.EOF {
		err = nil
	}
	return b, err
}

// within refuses a part that the source does not have.
func (s source) within(off, n int64) error {
	if off < 0 || n < 0 || off > s.size || n > s.size-off {
		return bad("the file is cut off: its headers place %#x bytes at offset %#x, it has %#x", n, off, s.size)
	}
	return nil
}

// open reads the headers.
func (c *Core) open(s source) (*Core, error) {
	if err := c.read(s); err != nil {
		return nil, errors.Join(inFile(err, c.name), c.Close())
	}
	return c, nil
}

func (c *Core) read(s source) error {
	for range 3 { // a compressed, flattened dump
		head, err := s.bytes(0, min(s.size, headSize))
		if err != nil {
			return err
		}
		form := formOf(head)
		if form == nil {
			return bad("a memory dump is wanted: an ELF core file, or one of makedumpfile's")
		}
		c.addFormat(form.name)
		if form.unwrap == nil {
			return form.read(c, s)
		}
		if s, err = c.spooled(s, form.unwrap); err != nil {
			return err
		}
	}
	return bad("packed more than once")
}

func (c *Core) addFormat(name string) {
	if c.format == "" {
		c.format = name
	} else {
		c.format = name + ", " + c.format
	}
}

// setRAM takes the ranges of memory, by ascending address, and keeps the limits.
func (c *Core) setRAM(list []Range) error {
	slices.SortFunc(list, func(a, b Range) int { return cmp.Compare(a.Phys, b.Phys) })
	total := uint64(0)
	for _, r := range list {
		last := len(c.ram) - 1
		if last >= 0 && c.ram[last].End() == r.Phys {
			c.ram[last].Size += r.Size
		} else {
			c.ram = append(c.ram, r)
		}
		if total += r.Size; total > bounded.DumpMemory {
			return bad("the machine has more than 64 GiB of memory")
		}
	}
	if total == 0 {
		return bad("it holds no memory")
	}
	if len(c.ram) > bounded.DumpRanges {
		return errRanges
	}
	return nil
}

var errRanges = bad("its memory has more than %d separate ranges", bounded.DumpRanges)

// Name is the name that the dump was opened by.
func (c *Core) Name() string { return printable.Name(c.name) }

// Format names the file's format, such as "ELF, zstd".
func (c *Core) Format() string { return c.format }

// CPUs returns the machine's processors. The caller must not change them.
func (c *Core) CPUs() []CPU { return c.cpus }

// RAM lists the physical memory by ascending address, in whole pages. The caller
// must not change it.
func (c *Core) RAM() []Range { return c.ram }

// rangeAt is the range of RAM that holds an address.
func (c *Core) rangeAt(phys uint64) (Range, bool) {
	i, found := slices.BinarySearchFunc(c.ram, phys, func(r Range, p uint64) int { return cmp.Compare(r.Phys, p) })
	if !found {
		i--
	}
	if i < 0 || phys-c.ram[i].Phys >= c.ram[i].Size {
		return Range{}, false
	}
	return c.ram[i], true
}

// Present is nil for an address that can be read; otherwise a *FilteredError or an
// *AbsentError.
func (c *Core) Present(phys uint64) error {
	if _, ok := c.rangeAt(phys); !ok {
		return &AbsentError{phys}
	}
	return c.mem.present(phys)
}

// ReadPhys fills b with the physical memory at an address. An error may be a
// *FilteredError or an *AbsentError, then b is filled up to there.
func (c *Core) ReadPhys(phys uint64, b []byte) error {
	for len(b) > 0 {
		if err := c.Present(phys); err != nil {
			return err
		}
		n := min(uint64(len(b)), PageSize-phys%PageSize)
		if err := c.mem.read(phys, b[:n]); err != nil {
			return inFile(err, c.name)
		}
		phys, b = phys+n, b[n:]
	}
	return nil
}

// Close closes the file. What was mapped stays mapped; nothing more can be read.
func (c *Core) Close() error {
	var err error
	for _, f := range c.files {
		err = errors.Join(err, f.Close())
	}
	c.files = nil
	return err
}

// form is a form that a dump can have.
type form struct {
	name string
	is   func(head []byte) bool
	// unwrap writes what is packed to a spool.
	unwrap func(s source, to *spool) error
	read   func(c *Core, s source) error
	// peek unpacks the beginning of packed data.
	peek func(b []byte) []byte
}

// headSize is the number of bytes that formOf needs.
const headSize = 64

func forms() []form {
	return []form{
		{name: "ELF", is: isELF, read: readELF},
		{name: "kdump", is: prefix(kdumpMagic), read: readKdump},
		{name: "flattened", is: prefix(flatMagic), unwrap: unwrapFlattened, peek: peekFlattened},
		{name: "zstd", is: prefix("\x28\xb5\x2f\xfd"), unwrap: unwrapZstd, peek: peekZstd},
		{name: "gzip", is: prefix("\x1f\x8b\x08"), unwrap: unwrapGzip, peek: peekGzip},
	}
}

func formOf(head []byte) *form {
	for _, f := range forms() {
		if f.is(head) {
			return &f
		}
	}
	return nil
}

func prefix(magic string) func([]byte) bool {
	return func(b []byte) bool { return len(b) >= len(magic) && string(b[:len(magic)]) == magic }
}

// String is for messages.
func (r Range) String() string { return fmt.Sprintf("%#x-%#x", r.Phys, r.End()) }

// Is reports whether a file of that size is a dump, by its first bytes: an ELF core
// file, or a stream with one.
func Is(r io.ReaderAt, size int64) bool {
	head := make([]byte, min(size, 1<<16))
	if n, err := r.ReadAt(head, 0); err != nil && err != io.EOF || n == 0 {
		return false
	}
	f := formOf(head)
	if f != nil && f.peek != nil {
		head = f.peek(head)
		f = formOf(head)
	}
	if f == nil || f.read == nil {
		return false
	}
	return !isELF(head) || len(head) > 18 && le.Uint16(head[16:]) == elfCore
}
