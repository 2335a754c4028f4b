package guestfast

import (
	"bytes"
	"debug/elf"
	_ "embed"
	"encoding/binary"
	"fmt"
	"strings"

	"kprobelab/kprobes"
	"kprobelab/x86"
)

// object is fastpath.S assembled: a relocatable file with a section for each
// function, called .text. and its name. make guest builds it. It is not built by
// go generate, because another compiler would write another guest kernel.
//
//go:embed fastpath.o
var object []byte

const textPrefix = ".text."

// Object is the code of the fast path, as the assembler wrote it.
func Object() []byte { return object }

// code is the object with the values that its undefined symbols have so far.
type code struct {
	file    *elf.File
	symbols []elf.Symbol
	values  map[string]x86.Addr
	// at is where a section is, 0 where it is not placed.
	at map[elf.SectionIndex]x86.Addr
}

func openCode() (*code, error) {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return nil, err
	}
	symbols, err := f.Symbols()
	return &code{file: f, symbols: symbols, values: map[string]x86.Addr{}, at: map[elf.SectionIndex]x86.Addr{}}, err
}

// place puts a function into guest memory, once, under its own name. What it
// refers to has its value, or is placed, before.
func (c *code) place(m kprobes.Machine, name string) (x86.Addr, error) {
	for n, s := range c.file.Sections {
		if s.Name != textPrefix+name {
			continue
		}
		index := elf.SectionIndex(n)
		if at := c.at[index]; at != 0 {
			return at, nil
		}
		text, err := s.Data()
		if err != nil {
			return 0, err
		}
		at, err := m.AllocExec(len(text), strings.TrimSuffix(name, ".ss"))
		if err != nil {
			return 0, err
		}
		if err := c.relocate(text, at, s.Name); err != nil {
			return 0, err
		}
		c.at[index] = at
		return at, m.PokeText(at, text)
	}
	return 0, fmt.Errorf("BUG: no %s in the fast path's code", name)
}

// relocate fills in what a section's relocations ask for (System V ABI, AMD64
// supplement, "Relocation").
func (c *code) relocate(text []byte, at x86.Addr, name string) error {
	s := c.file.Section(".rela" + name)
	if s == nil {
		return nil
	}
	data, err := s.Data()
	if err != nil {
		return err
	}
	var r elf.Rela64
	for from := bytes.NewReader(data); from.Len() > 0; {
		if err := binary.Read(from, binary.LittleEndian, &r); err != nil {
			return err
		}
		to, err := c.value(elf.R_SYM64(r.Info))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		v, field := to.Add(r.Addend), text[r.Off:]
		switch elf.R_X86_64(elf.R_TYPE64(r.Info)) {
		case elf.R_X86_64_64:
			binary.LittleEndian.PutUint64(field, uint64(v))
		case elf.R_X86_64_32S:
			binary.LittleEndian.PutUint32(field, uint32(v))
		case elf.R_X86_64_PC32, elf.R_X86_64_PLT32:
			binary.LittleEndian.PutUint32(field, uint32(v.Sub(at.Add(int64(r.Off)))))
		default:
			return fmt.Errorf("BUG: %s has a relocation of type %d", name, elf.R_TYPE64(r.Info))
		}
	}
	return nil
}

// value is a symbol's, by its number in the table, where 0 is none.
func (c *code) value(n uint32) (x86.Addr, error) {
	s := &c.symbols[n-1]
	v, ok := c.values[s.Name], true
	switch s.Section {
	case elf.SHN_UNDEF:
		_, ok = c.values[s.Name]
	default:
		v, ok = c.at[s.Section]
		v += x86.Addr(s.Value)
	}
	if !ok {
		return 0, fmt.Errorf("BUG: %s %s has no value", s.Name, s.Section)
	}
	return v, nil
}
