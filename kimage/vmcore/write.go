package vmcore

import (
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Image is a dump to be written.
type Image struct {
	CPUs []CPU
	// VMCoreInfo is the text of VMCOREINFO; empty if there is none.
	VMCoreInfo []byte
	// Memory is the machine's memory, in whole pages, without overlap.
	Memory []Memory
	// Also are parts of Memory that readers shall find at another virtual address
	// too, such as the kernel's text.
	Also []Placed
}

// Memory is a range of memory with its content.
type Memory struct {
	Placed
	// Data has Size bytes, from 0 on.
	Data io.ReaderAt
}

// Placed is a range of memory that is mapped at a virtual address; 0 says nothing.
type Placed struct {
	Range
	Virt uint64
}

// Image is the dump as it is, to be written anew.
func (c *Core) Image() *Image {
	img := &Image{CPUs: c.cpus, VMCoreInfo: c.RawVMCoreInfo()}
	for _, r := range c.ram {
		img.Memory = append(img.Memory, Memory{Placed{Range: r}, &reader{c, r}})
	}
	return img
}

// reader is a range of a dump's memory; pages that were left out are zeros.
type reader struct {
	c *Core
	r Range
}

func (r *reader) ReadAt(b []byte, off int64) (int, error) {
	n := min(int64(len(b)), int64(r.r.Size)-off)
	if off%PageSize != 0 || n%PageSize != 0 {
		return 0, errors.New("BUG: memory of a dump is read by pages")
	}
	if err := r.c.readPresent(r.r.Phys+uint64(off), b[:n]); err != nil {
		return 0, err
	}
	if n < int64(len(b)) {
		return int(n), io.EOF
	}
	return int(n), nil
}

// WriteZstd writes a dump as Write does, as one zstd stream.
func WriteZstd(w io.Writer, img *Image) error {
	z, err := zstd.NewWriter(w)
	if err != nil {
		return err
	}
	return errors.Join(Write(struct{ io.Writer }{z}, img), z.Close())
}

// Write writes a dump as an ELF core file that gdb, crash and drgn read, too: each CPU
// has a note NT_PRSTATUS and, with Control, one of QEMU's form. All memory begins at
// multiples of PageSize, so that it can be mapped. Into a regular file, pages of zeros
// are written as holes.
func Write(w io.Writer, img *Image) error {
	head, err := img.head()
	if err != nil {
		return err
	}
	out := newHoles(w)
	if err := out.write(head); err != nil {
		return err
	}
	for i := range img.Memory {
		if err := img.Memory[i].writeTo(out); err != nil {
			return err
		}
	}
	return out.done()
}

func (m *Memory) writeTo(out *holes) error {
	b := make([]byte, 256*PageSize)
	for at := uint64(0); at < m.Size; {
		n := min(m.Size-at, uint64(len(b)))
		if got, err := m.Data.ReadAt(b[:n], int64(at)); uint64(got) < n {
			return fmt.Errorf("the memory at %#x: %w", m.Phys+at+uint64(got), err)
		}
		if err := out.write(b[:n]); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// head is all that stands before the memory.
func (img *Image) head() ([]byte, error) {
	segments := 1 + len(img.Memory) + len(img.Also)
	if segments >= elfManySegments {
		return nil, fmt.Errorf("a dump with %d ranges of memory cannot be written", segments-1)
	}
	notes := img.notes()
	notesAt := uint64(elfHeaderSize + segments*elfProgramSize)
	at := (notesAt + uint64(len(notes)) + PageSize - 1) &^ (PageSize - 1)
	b := elfHeader(segments)
	b = appendSegment(b, elfNote, notesAt, Placed{Range: Range{0, uint64(len(notes))}})
	var loads []byte
	for _, m := range img.Memory {
		if m.Phys%PageSize != 0 || m.Size%PageSize != 0 {
			return nil, fmt.Errorf("memory at %#x of %#x bytes is not whole pages", m.Phys, m.Size)
		}
		loads = appendSegment(loads, elfLoad, at, m.Placed)
		for _, p := range img.Also {
			if p.Phys >= m.Phys && p.End() <= m.End() {
				b = appendSegment(b, elfLoad, at+p.Phys-m.Phys, p)
			}
		}
		at += m.Size
	}
	b = append(append(b, loads...), notes...)
	if uint64(len(b)) != notesAt+uint64(len(notes)) {
		return nil, errors.New("a part of Also is not within one part of Memory")
	}
	return append(b, zeroPage[:-len(b)&(PageSize-1)]...), nil
}

func elfHeader(segments int) []byte {
	b := make([]byte, elfHeaderSize)
	copy(b, "\x7fELF\x02\x01\x01")
	le.PutUint16(b[16:], elfCore)
	le.PutUint16(b[18:], elfAMD64)
	le.PutUint32(b[20:], 1)
	le.PutUint64(b[32:], elfHeaderSize)
	le.PutUint16(b[52:], elfHeaderSize)
	le.PutUint16(b[54:], elfProgramSize)
	le.PutUint16(b[56:], uint16(segments))
	return b
}

// readWriteExec are the flags of the segments of /proc/vmcore: PF_R, PF_W and PF_X.
const readWriteExec = 7

func appendSegment(b []byte, typ uint32, off uint64, p Placed) []byte {
	flags := uint32(0)
	if typ == elfLoad {
		flags = readWriteExec
	}
	b = le.AppendUint32(le.AppendUint32(b, typ), flags)
	for _, v := range []uint64{off, p.Virt, p.Phys, p.Size, p.Size, 0} {
		b = le.AppendUint64(b, v)
	}
	return b
}

// notes are in QEMU's order.
func (img *Image) notes() []byte {
	var b []byte
	for i := range img.CPUs {
		b = note{"CORE", notePrstatus, img.CPUs[i].prstatus()}.appendTo(b)
	}
	for i := range img.CPUs {
		if img.CPUs[i].Control != nil {
			b = note{"QEMU", noteNone, img.CPUs[i].qemu()}.appendTo(b)
		}
	}
	if len(img.VMCoreInfo) > 0 {
		b = note{"VMCOREINFO", noteNone, img.VMCoreInfo}.appendTo(b)
	}
	return b
}

// holes writes to a file without its pages of zeros, or to a stream with them.
type holes struct {
	w    io.Writer
	file interface {
		io.Seeker
		Truncate(size int64) error
	}
	at int64
}

func newHoles(w io.Writer) *holes {
	h := &holes{w: w}
	if f, ok := w.(interface {
		io.Seeker
		Truncate(size int64) error
	}); ok {
		// Only an empty file reads as zeros at places that were not written.
		if end, err := f.Seek(0, io.SeekEnd); err == nil && end == 0 && f.Truncate(0) == nil {
			h.file = f
		}
	}
	return h
}

func (h *holes) write(b []byte) error {
	for len(b) > 0 {
		n := len(b)
		if h.file != nil {
			zeros := pages(b, h.at, true)
			if zeros > 0 {
				if _, err := h.file.Seek(int64(zeros), io.SeekCurrent); err != nil {
					return err
				}
				b, h.at = b[zeros:], h.at+int64(zeros)
			}
			n = pages(b, h.at, false)
		}
		if _, err := h.w.Write(b[:n]); err != nil {
			return err
		}
		b, h.at = b[n:], h.at+int64(n)
	}
	return nil
}

// done gives a file that ends with zeros its length.
func (h *holes) done() error {
	if h.file == nil {
		return nil
	}
	return h.file.Truncate(h.at)
}
