package sdt_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/sdt"
)

// TestArgumentsOfTracepoints: each form that compilers write, and what is none.
func TestArgumentsOfTracepoints(t *testing.T) {
	for text, want := range map[string]sdt.Argument{
		"-4@$-5":                      {Size: 4, Signed: true, Value: -5},
		"8@%rax":                      {Size: 8, Base: "rax"},
		"1@%dil":                      {Size: 1, Base: "rdi"},
		"1@%al":                       {Size: 1, Base: "rax"},
		"-2@%r9w":                     {Size: 2, Signed: true, Base: "r9"},
		"4@(%rsp)":                    {Size: 4, Memory: true, Base: "rsp"},
		"-8@-1204(%rbp)":              {Size: 8, Signed: true, Memory: true, Base: "rbp", Value: -1204},
		"4@16(%rdx,%rcx,4)":           {Size: 4, Memory: true, Base: "rdx", Index: "rcx", Scale: 2, Value: 16},
		"4@(%rdx,%r15)":               {Size: 4, Memory: true, Base: "rdx", Index: "r15"},
		"8@9223372036854775807(%rip)": {Size: 8, Memory: true, Base: "rip", Value: 1<<63 - 1},
	} {
		got, err := sdt.ReadArguments(text)
		require.NoError(t, err, text)
		require.Equal(t, []sdt.Argument{want}, got, text)
	}
	for _, text := range []string{"8f@%xmm0", "3@%eax", "4@%xmm0", "4@$", "4@", "4", "4@-(%rax)", "4@(%rax", "4@var(%rip)", "4@(%rax,%cs,4)", "4@(%rax,%rbx,3)", "8@99999999999999999999(%rax)"} {
		_, err := sdt.ReadArguments(text)
		require.ErrorIs(t, err, sdt.ErrArgument, text)
	}
	none, err := sdt.ReadArguments(" ")
	require.NoError(t, err)
	require.Empty(t, none)
}

// TestNotesThatLeadNowhere: a damaged program has an error, and no panic.
func TestNotesThatLeadNowhere(t *testing.T) {
	description := func(place, semaphore uint64, texts string) []byte {
		b := binary.LittleEndian.AppendUint64(nil, place)
		return append(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(b, 0), semaphore), texts...)
	}
	whole := noted("stapsdt\x00", 3, description(0x1010, 0x2020, "p\x00n\x008@%rax\x00"))
	for name, c := range map[string]struct {
		notes []byte
		err   error
		n     int
	}{
		"none":              {nil, nil, 0},
		"whole":             {whole, nil, 1},
		"two":               {append(bytes.Clone(whole), whole...), nil, 2},
		"another's":         {noted("GNU\x00", 3, []byte("abc")), nil, 0},
		"cut":               {whole[:len(whole)-8], sdt.ErrNotes, 0},
		"a head alone":      {whole[:7], sdt.ErrNotes, 0},
		"no addresses":      {noted("stapsdt\x00", 3, make([]byte, 20)), sdt.ErrNotes, 0},
		"no names":          {noted("stapsdt\x00", 3, description(0x1010, 0, "p\x00n\x00")), sdt.ErrNotes, 0},
		"no code there":     {noted("stapsdt\x00", 3, description(0x2010, 0, "p\x00n\x00\x00")), sdt.ErrNotes, 0},
		"no data there":     {noted("stapsdt\x00", 3, description(0x1010, 0x1010, "p\x00n\x00\x00")), sdt.ErrNotes, 0},
		"sizes beyond all":  {binary.LittleEndian.AppendUint64(bytes.Repeat([]byte{0xff}, 8), 3), sdt.ErrNotes, 0},
		"an endless length": {append(bytes.Repeat([]byte{0xff}, 4), make([]byte, 60)...), sdt.ErrNotes, 0},
	} {
		got, err := sdt.Read(bytes.NewReader(program(c.notes)))
		require.ErrorIs(t, err, c.err, name)
		require.Len(t, got, c.n, name)
		for _, n := range got {
			require.Equal(t, sdt.Note{Provider: "p", Name: "n", Arguments: "8@%rax", Address: 0x1010, Offset: 0x510, Semaphore: 0x620}, n)
		}
	}
	_, err := sdt.Read(bytes.NewReader([]byte("#!/bin/sh")))
	require.Error(t, err)
}

// noted is a note.
func noted(owner string, kind uint32, description []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(owner)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(description)))
	b = append(binary.LittleEndian.AppendUint32(b, kind), owner...)
	b = append(b, description...)
	return append(b, make([]byte, -len(b)&3)...)
}

// program is a program of code at 0x1000, data at 0x2000, and notes.
func program(notes []byte) []byte {
	const names = "\x00.note.stapsdt\x00.shstrtab\x00"
	const head, segment, section = 64, 56, 64
	at := uint64(head + 2*segment)
	var b bytes.Buffer
	put := func(v any) { _ = binary.Write(&b, binary.LittleEndian, v) }
	h := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(elf.EM_X86_64), Version: 1, Phoff: head, Phentsize: segment, Phnum: 2, Ehsize: head,
		Shoff: at + uint64(len(names)+len(notes)), Shentsize: section, Shnum: 3, Shstrndx: 2,
	}
	copy(h.Ident[:], "\x7fELF\x02\x01\x01")
	put(h)
	put(elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Off: 0x500, Vaddr: 0x1000, Filesz: 0x100, Memsz: 0x100})
	put(elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_W), Off: 0x600, Vaddr: 0x2000, Filesz: 0x100, Memsz: 0x100})
	b.WriteString(names)
	b.Write(notes)
	put(elf.Section64{})
	put(elf.Section64{Name: 1, Type: uint32(elf.SHT_NOTE), Off: at + uint64(len(names)), Size: uint64(len(notes))})
	put(elf.Section64{Name: 15, Type: uint32(elf.SHT_STRTAB), Off: at, Size: uint64(len(names))})
	return b.Bytes()
}
