// Package opened shows an image, while it is opened, to the packages that work for kimage: its memory, its
// symbols and its sections, and what its functions' instructions show.
//
// It must not know of files, of profiles, or what is done with the image.
package opened

import (
	"bytes"
	"encoding/binary"

	"kprobelab/decoder"
	"kprobelab/x86"
)

// Image is an image that is being opened.
type Image interface {
	// Bytes returns n bytes at an address, which may be written; nil if the image does not have all of them.
	Bytes(addr x86.Addr, n int) []byte
	// CodeAt copies the bytes from an address on into b, as far as memory goes, and returns how many.
	CodeAt(addr x86.Addr, b []byte) int
	// SymbolAddr returns the address of the first symbol of that name that is no module's.
	SymbolAddr(name string) (x86.Addr, bool)
	// Lookup lists the symbols of a name, SymbolAt returns the one that covers an address.
	Lookup(name string) []Symbol
	SymbolAt(addr x86.Addr) (Symbol, bool)
	// Partly returns the name of a function that a compiler may have renamed, "" if there is none.
	Partly(name string) string
	// Section returns the first section of a name that is no module's, nil if there is none.
	Section(name string) *Section
	// Sections lists the sections in memory by ascending address.
	Sections() []Section
	// OnlyText reports whether kallsyms has functions only.
	OnlyText() bool
	// Kernel reports whether the image is a kernel.
	Kernel() bool
	// EntryText returns the addresses of entry text, and of interrupt entry's.
	EntryText() (entry, irqEntry x86.Range)
}

// Symbol is one line of kallsyms.
type Symbol struct {
	Name   string
	Addr   x86.Addr
	Size   uint64
	Type   byte
	Module string
}

// Section is a section in memory. Its data may be written.
type Section struct {
	Name   string
	Addr   x86.Addr
	Data   []byte
	Exec   bool
	Module string
}

// KernelHalf separates the kernel's addresses from per-CPU offsets.
const KernelHalf = 0xffff800000000000

// MaxSearched bounds the code of a function that is searched, in bytes.
const MaxSearched = 4 << 10

// MaxAfter bounds how many instructions are read to find what follows a comparison.
const MaxAfter = 24

// Rel32 returns the address that a relative pointer of 4 bytes names: at is the
// pointer's own address, b its bytes.
func Rel32(at x86.Addr, b []byte) x86.Addr {
	return at.Add(int64(int32(binary.LittleEndian.Uint32(b))))
}

// Abs64 returns the address in 8 bytes.
func Abs64(b []byte) x86.Addr { return x86.Addr(binary.LittleEndian.Uint64(b)) }

// Endbr64, and its replacement if no indirect branch may land there: to 6.17, and from
// 6.18 on (gen_endbr_poison).
var (
	Endbr64     = []byte{0xf3, 0x0f, 0x1e, 0xfa}
	SealedNop4  = []byte{0x66, 0x0f, 0x1f, 0x00}
	SealedNopl4 = []byte{0x0f, 0x1f, 0x40, 0xd6}
)

// IsEndbr reports whether b is an ENDBR or its replacement.
func IsEndbr(b []byte) bool {
	return bytes.Equal(b, Endbr64) || bytes.Equal(b, SealedNop4) || bytes.Equal(b, SealedNopl4)
}

// Says reports whether a text is among the kernel's.
func Says(img Image, text string) bool {
	s := img.Section(".rodata")
	return s != nil && bytes.Contains(s.Data, []byte(text))
}

// Walk visits the instructions of a function one by one, until visit returns false or one is
// unknown. It visits nothing if the image has no function of the name, or several.
func Walk(img Image, function string, visit func(at x86.Addr, i *decoder.Inst) bool) {
	found := img.Lookup(function)
	if len(found) != 1 {
		return
	}
	at := found[0].Addr
	for end := at.Add(int64(found[0].Size)); at < end; {
		var b [decoder.MaxInsnSize]byte
		i, err := decoder.Decode(b[:img.CodeAt(at, b[:])])
		if err != nil || !visit(at, &i) {
			return
		}
		at = at.Add(int64(i.Length))
	}
}

// Moves reports whether a function moves a constant of 8 or 32 bits into memory or a register (mov $N).
func Moves(img Image, function string, n int64) (found bool) {
	Walk(img, function, func(_ x86.Addr, i *decoder.Inst) bool {
		if i.Encoding == decoder.EncPrimary {
			switch {
			case i.Opcode >= 0xb8 && i.Opcode <= 0xbf, i.Opcode == 0xc7:
				found = found || i.Imm() == n
			case i.Opcode == 0xc6:
				found = found || uint8(i.Imm()) == uint8(n)
			}
		}
		return !found
	})
	return found
}

// Compares reports whether a function compares a byte with a constant (cmpb $N).
func Compares(img Image, function string, n uint8) (found bool) {
	Walk(img, function, func(_ x86.Addr, i *decoder.Inst) bool {
		if i.Encoding == decoder.EncPrimary {
			const cmp = 7
			found = (i.Opcode == 0x3c || i.Opcode == 0x80 && i.ModRM>>3&7 == cmp) && uint8(i.Imm()) == n
		}
		return !found
	})
	return found
}

// ReturnOf returns the return address of a function's first direct call of callee; 0 if it has
// none.
func ReturnOf(img Image, function, callee string) (to x86.Addr) {
	called := img.Lookup(callee)
	if len(called) != 1 {
		return 0
	}
	const call = 0xe8
	Walk(img, function, func(at x86.Addr, i *decoder.Inst) bool {
		if target, ok := i.Target(at); ok && i.Encoding == decoder.EncPrimary && i.Opcode == call && target == called[0].Addr {
			to = at.Add(int64(i.Length))
		}
		return to == 0
	})
	return to
}
