// Package tinyprogram makes ELF programs of a few assembled functions, for tests of what runs
// programs.
//
// It must not know what runs them.
package tinyprogram

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"kprobelab/internal/assemble"
	"kprobelab/x86"
)

// Where a program has its functions, Stride apart, of which the last has the rest of a page, and its data, which can be written.
const (
	Text   x86.Addr = 0x401000
	Stride          = 0x80
	Data   x86.Addr = 0x402000

	pageSize = 4096
)

// Function is one of a program's, in the syntax of package assemble.
type Function struct{ Name, Text string }

// At is the address of a program's n-th function.
func At(n int) x86.Addr { return Text.Add(int64(n) * Stride) }

// Offset is its offset in the file.
func Offset(n int) uint64 { return pageSize + uint64(n)*Stride }

// Build makes an ELF file that begins in the first function. data is at Data, in the file's third
// page.
func Build(data []byte, functions ...Function) ([]byte, error) {
	text := bytes.Repeat([]byte{0xcc}, pageSize)
	names, symbols := []byte{0}, make([]byte, symbolSize)
	for i, f := range functions {
		code, err := assemble.Code(f.Text, At(i))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		room := Stride
		if i == len(functions)-1 {
			room = pageSize - i*Stride
		}
		if len(code) > room {
			return nil, fmt.Errorf("%s: %d bytes are more than %d", f.Name, len(code), room)
		}
		copy(text[i*Stride:], code)
		symbols = binary.LittleEndian.AppendUint32(symbols, uint32(len(names)))
		symbols = append(symbols, 1<<4|2, 0, 1, 0) // global function of section 1
		symbols = binary.LittleEndian.AppendUint64(symbols, uint64(At(i)))
		symbols = binary.LittleEndian.AppendUint64(symbols, uint64(len(code)))
		names = append(append(names, f.Name...), 0)
	}
	page := make([]byte, pageSize)
	copy(page, data)
	file := append(make([]byte, pageSize), text...)
	file = append(file, page...)
	symbolsAt := len(file)
	file = append(file, symbols...)
	namesAt := len(file)
	file = append(file, names...)
	sectionsAt := len(file)
	file = append(file, make([]byte, sectionSize)...)
	file = append(file, section(1, 6, Text, pageSize, pageSize, 0, 0)...)            // progbits
	file = append(file, section(2, 0, 0, symbolsAt, len(symbols), 3, symbolSize)...) // symtab
	file = append(file, section(3, 0, 0, namesAt, len(names), 0, 0)...)              // strtab
	copy(file, header(sectionsAt))
	copy(file[headerSize:], piece(5, pageSize, Text))
	copy(file[headerSize+pieceSize:], piece(6, 2*pageSize, Data))
	return file, nil
}

const (
	headerSize  = 64
	pieceSize   = 56
	sectionSize = 64
	symbolSize  = 24
)

// header is the file's (Elf64_Ehdr).
func header(sections int) []byte {
	b := append([]byte{0x7f, 'E', 'L', 'F', 2, 1, 1}, make([]byte, 9)...)
	put16 := func(list ...uint16) {
		for _, v := range list {
			b = binary.LittleEndian.AppendUint16(b, v)
		}
	}
	put16(2, 62, 1, 0) // ET_EXEC, x86-64
	b = binary.LittleEndian.AppendUint64(b, uint64(Text))
	b = binary.LittleEndian.AppendUint64(b, headerSize)
	b = binary.LittleEndian.AppendUint64(b, uint64(sections))
	put16(0, 0, headerSize, pieceSize, 2, sectionSize, 4, 0)
	return b
}

// piece is a program header of one page that is loaded.
func piece(flags uint32, off uint64, at x86.Addr) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 1)
	b = binary.LittleEndian.AppendUint32(b, flags)
	for _, v := range []uint64{off, uint64(at), uint64(at), pageSize, pageSize, pageSize} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

func section(kind uint32, flags uint64, at x86.Addr, off, size int, link uint32, entry uint64) []byte {
	b := binary.LittleEndian.AppendUint32(nil, 0)
	b = binary.LittleEndian.AppendUint32(b, kind)
	for _, v := range []uint64{flags, uint64(at), uint64(off), uint64(size)} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = binary.LittleEndian.AppendUint32(b, link)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, 8)
	return binary.LittleEndian.AppendUint64(b, entry)
}
