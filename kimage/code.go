package kimage

import (
	"kprobelab/decoder"
	"kprobelab/x86"
)

// Walk visits the instructions of a function one by one, until visit returns false or one is
// unknown. It visits nothing if the image has no function of the name, or several.
func (img *Image) Walk(function string, visit func(at x86.Addr, i *decoder.Inst) bool) {
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
func (img *Image) Moves(function string, n int64) (found bool) {
	img.Walk(function, func(_ x86.Addr, i *decoder.Inst) bool {
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
func (img *Image) Compares(function string, n uint8) (found bool) {
	img.Walk(function, func(_ x86.Addr, i *decoder.Inst) bool {
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
func (img *Image) ReturnOf(function, callee string) (to x86.Addr) {
	called := img.Lookup(callee)
	if len(called) != 1 {
		return 0
	}
	const call = 0xe8
	img.Walk(function, func(at x86.Addr, i *decoder.Inst) bool {
		if target, ok := i.Target(at); ok && i.Encoding == decoder.EncPrimary && i.Opcode == call && target == called[0].Addr {
			to = at.Add(int64(i.Length))
		}
		return to == 0
	})
	return to
}
