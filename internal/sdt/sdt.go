// Package sdt reads the notes that SystemTap's sys/sdt.h puts into a program: its user statically defined tracepoints (USDT).
//
// It must not know who probes them.
package sdt

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"kprobelab/internal/bounded"
)

// Note is a place of a tracepoint. A tracepoint may have several.
type Note struct {
	Provider, Name string
	// Arguments are as the compiler wrote them: "-4@%edi 8@16(%rsp)".
	Arguments string
	// Address locates the place in the program as it is linked, Offset in the file.
	Address, Offset uint64
	// Semaphore is the offset of a counter in the file, 0 if there is none: the program asks it whether the tracepoint is used.
	Semaphore uint64
	// Moves: the program lies somewhere else in each process.
	Moves bool
}

// ErrNotes: a program's notes lead nowhere.
var ErrNotes = errors.New("its notes of tracepoints are damaged")

const (
	section = ".note.stapsdt"
	owner   = "stapsdt\x00"
	kind    = 3 // _SDT_NOTE_TYPE
)

// Read reads the notes of a program. The error is of a file that is no ELF file, or ErrNotes.
func Read(program io.ReaderAt) ([]Note, error) {
	f, err := elf.NewFile(program)
	if err != nil {
		return nil, err
	}
	s := f.Section(section)
	switch {
	case s == nil:
		return nil, nil
	case f.Class != elf.ELFCLASS64, f.Data != elf.ELFDATA2LSB:
		return nil, fmt.Errorf("%w: it is no program of 64 bits, little endian", ErrNotes)
	}
	data, err := bounded.ReadAll(s.Open(), bounded.GuestFile)
	if err != nil {
		return nil, err
	}
	var list []Note
	for len(data) > 0 {
		description, rest, err := next(data)
		if err != nil {
			return nil, err
		}
		if data = rest; description == nil {
			continue
		}
		n, err := note(f, description)
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return list, nil
}

// next cuts a note off: its description, nil if it is another's.
func next(data []byte) (description, rest []byte, err error) {
	const head = 12
	if len(data) < head {
		return nil, nil, fmt.Errorf("%w: one ends early", ErrNotes)
	}
	name, size, of := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:]), binary.LittleEndian.Uint32(data[8:])
	aligned := func(n uint32) uint64 { return (uint64(n) + 3) &^ 3 }
	if end := head + aligned(name) + uint64(size); end > uint64(len(data)) {
		return nil, nil, fmt.Errorf("%w: one ends early", ErrNotes)
	}
	begin := head + aligned(name)
	rest = data[min(begin+aligned(size), uint64(len(data))):]
	if of != kind || string(data[head:head+uint64(name)]) != owner {
		return nil, rest, nil
	}
	return data[begin : begin+uint64(size)], rest, nil
}

// note reads a description: three addresses, and three texts. The second is that of .stapsdt.base when the note was written; a linker
// that has moved that section since, prelink, has not moved the others.
func note(f *elf.File, b []byte) (Note, error) {
	const addresses = 3 * 8
	if len(b) < addresses {
		return Note{}, fmt.Errorf("%w: one has no addresses", ErrNotes)
	}
	texts := bytes.SplitN(b[addresses:], []byte{0}, 4)
	if len(texts) != 4 {
		return Note{}, fmt.Errorf("%w: one has no names", ErrNotes)
	}
	place, base, semaphore := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	if s := f.Section(".stapsdt.base"); s != nil && base != 0 {
		place += s.Addr - base
		if semaphore != 0 {
			semaphore += s.Addr - base
		}
	}
	n := Note{
		Provider: string(texts[0]), Name: string(texts[1]), Arguments: string(texts[2]), Address: place, Moves: f.Type == elf.ET_DYN,
	}
	var ok bool
	if n.Offset, ok = offset(f, place, elf.PF_X); !ok {
		return Note{}, fmt.Errorf("%w: %s:%s is at %#x, where there is no code", ErrNotes, n.Provider, n.Name, place)
	}
	if semaphore != 0 {
		if n.Semaphore, ok = offset(f, semaphore, elf.PF_W); !ok {
			return Note{}, fmt.Errorf("%w: the semaphore of %s:%s is at %#x, where there is no data", ErrNotes, n.Provider, n.Name, semaphore)
		}
	}
	return n, nil
}

// offset returns the offset in the file of an address in a segment.
func offset(f *elf.File, address uint64, flag elf.ProgFlag) (uint64, bool) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&flag != 0 && address >= p.Vaddr && address-p.Vaddr < p.Memsz {
			return address - p.Vaddr + p.Off, true
		}
	}
	return 0, false
}
