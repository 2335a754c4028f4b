package boot

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"kprobelab/internal/qemu"
	"kprobelab/kimage/vmcore"
	"kprobelab/x86"
)

// Format is the file format of a dump.
type Format string

// The formats: an ELF core file, in which pages of zeros are holes, or the same as one
// zstd stream.
const (
	ELF  Format = "elf"
	Zstd Format = "zstd"
)

// Dump describes the dump of a machine.
type Dump struct {
	// File is the file's path; the file appears there when all is written.
	File   string
	Format Format
	// Progress is called with the number of saved bytes of memory; may be nil.
	Progress func(stage string, done, total int64)
}

// dumped is a dump that is being written. Text is the kernel's text at its link address. Without it
// the dump does not contain the mapping of memory, as with KASLR, and its readers walk page tables.
type dumped struct {
	Dump
	text x86.Range
}

// Saved describes the file that Save has written.
type Saved struct {
	// Bytes is the file's size, Memory the size of the machine's memory, in bytes.
	Bytes, Memory int64
}

// ErrOutput is a file that cannot be a dump's.
var ErrOutput = errors.New("a dump cannot be written there")

// CheckOutput refuses a path where no file can be put; an old file is replaced.
func CheckOutput(path string) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%w: %s is no regular file", ErrOutput, path)
	case err == nil:
		return nil
	}
	dir, err := os.Stat(filepath.Dir(path))
	if err == nil && !dir.IsDir() {
		err = fmt.Errorf("%w: %s is no folder", ErrOutput, filepath.Dir(path))
	}
	return err
}

// Save writes the machine as it stands. It needs room for its memory beside the file.
func (g *Guest) Save(to *Dump) (*Saved, error) {
	d := &dumped{Dump: *to}
	if d.Progress == nil {
		d.Progress = func(string, int64, int64) {}
	}
	if !g.o.KASLR {
		d.text = g.o.Kernel.text
	}
	dir, err := os.MkdirTemp(filepath.Dir(d.File), ".kprobelab-*")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	raw := filepath.Join(dir, "memory")
	if err := g.running.DumpMemory(raw, qemu.Form{}, func(done, total int64) { d.Progress("save", done, total) }); err != nil {
		return nil, err
	}
	core, err := vmcore.Open(raw)
	if err != nil {
		return nil, err
	}
	defer core.Close()
	out := filepath.Join(dir, "dump")
	s, err := d.write(core.Image(), out)
	if err != nil {
		return nil, err
	}
	return s, os.Rename(out, d.File)
}

// SaveByQEMU writes the machine as QEMU's dump-guest-memory does by itself, without the notes and
// places that Save adds: paging leaves out memory that no page table maps, the format is one of
// QEMUFormats. It is for tests of dump readers.
func (g *Guest) SaveByQEMU(file string, paging bool, format string) error {
	return g.running.DumpMemory(file, qemu.Form{Paging: paging, Format: format}, func(int64, int64) {})
}

// QEMUFormats are the formats that this QEMU's dump-guest-memory writes.
func (g *Guest) QEMUFormats() ([]string, error) { return g.running.Formats() }

// write writes the dump to a file.
func (d *dumped) write(img *vmcore.Image, file string) (*Saved, error) {
	if len(img.CPUs) == 0 || img.CPUs[0].Control == nil {
		return nil, errors.New("QEMU's dump says nothing of the processors")
	}
	s := &Saved{}
	for _, m := range img.Memory {
		s.Memory += int64(m.Size)
	}
	d.place(img)
	done := int64(0)
	for i := range img.Memory {
		m := &img.Memory[i]
		m.Data = counted{m.Data, func(n int) {
			done += int64(n)
			d.Progress(stageOf(d.Format), done, s.Memory)
		}}
	}
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	if d.Format == ELF {
		err = vmcore.Write(f, img)
	} else {
		err = vmcore.WriteZstd(f, img)
	}
	if err == nil {
		var info os.FileInfo
		if info, err = f.Stat(); err == nil {
			s.Bytes = info.Size()
		}
	}
	return s, errors.Join(err, f.Close())
}

func stageOf(f Format) string {
	if f == ELF {
		return "write"
	}
	return "compress"
}

// Where a kernel without KASLR maps all physical memory, with 4 and with 5 levels of
// page tables (Documentation/arch/x86/x86_64/mm.rst), and where its text is mapped from.
const (
	directMap4 = 0xffff888000000000
	directMap5 = 0xff11000000000000
	textMap    = 0xffffffff80000000
)

// place says for readers that walk no page tables where memory is mapped.
func (d *dumped) place(img *vmcore.Image) {
	if d.text == (x86.Range{}) {
		return
	}
	base := uint64(directMap4)
	if img.CPUs[0].Control.Levels() == 5 {
		base = directMap5
	}
	text := vmcore.Placed{Virt: uint64(d.text.Start) &^ (vmcore.PageSize - 1)}
	text.Phys = text.Virt - textMap
	text.Size = (uint64(d.text.End) - text.Virt + vmcore.PageSize - 1) &^ (vmcore.PageSize - 1)
	for i := range img.Memory {
		m := &img.Memory[i]
		m.Virt = base + m.Phys
		if text.Phys >= m.Phys && text.End() <= m.End() {
			img.Also = []vmcore.Placed{text}
		}
	}
}

// counted counts the bytes that are read.
type counted struct {
	io.ReaderAt
	count func(int)
}

func (c counted) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(p, off)
	c.count(n)
	return n, err
}
