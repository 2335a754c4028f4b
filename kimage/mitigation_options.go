package kimage

import (
	"bytes"

	"kprobelab/decoder"
	"kprobelab/x86"
)

// From 6.11 on a kernel can be built so that it does nothing about a bug
// (MITIGATION_SPECTRE_V2 and its like), unless its command line says so. No symbol tells, but
// for spectre_v2 the code does that reads the command line, and for spectre_v1 a variable.

// mitigationOptions are what the image itself says of the options, and how.
func (img *Image) mitigationOptions() map[string]string {
	off := map[string]string{}
	if b := img.findBanner(); !b.since(6, 11) {
		return off
	}
	for _, name := range []string{"spectre_v2_parse_cmdline", "spectre_v2_select_mitigation", "cpu_select_mitigations"} {
		for _, s := range img.Lookup(name) {
			if img.choosesNothing(&s) {
				off[optionSpectreV2] = "what " + name + " takes where the command line says nothing"
			}
		}
	}
	const variable = "spectre_v1_mitigation"
	if at, ok := img.symbolAddr(variable); ok {
		if b := img.bytes(at, 4); b != nil && le.Uint32(b) == 0 {
			off[optionSpectreV1] = variable + " is 0"
		}
	}
	return off
}

// beforeCall bounds how far before a call, in bytes, its arguments are loaded.
const beforeCall = 48

// choosesNothing: where cmdline_find_option finds no "spectre_v2", the function goes on
// where it goes without mitigations. Otherwise it would go to two places, or to one with
// another number.
func (img *Image) choosesNothing(s *Symbol) bool {
	find, ok := img.symbolAddr("cmdline_find_option")
	if !ok {
		return false
	}
	code := img.bytes(s.Addr, int(min(s.Size, maxSearched)))
	for i := beforeCall; i+5 <= len(code); i++ {
		call := s.Addr.Add(int64(i))
		if code[i] != x86.Call32 || rel32(call+5, code[i+1:]) != find || !img.loads(code[i-beforeCall:i], "spectre_v2") {
			continue
		}
		without, from, ok := lastUnless(code[i-beforeCall:i], call-beforeCall)
		return ok && img.isWhere(without, from)
	}
	return false
}

// loads: the code puts the address of that text into %rsi (mov $text,%rsi).
func (img *Image) loads(code []byte, text string) bool {
	mov := []byte{0x48, 0xc7, 0xc6}
	i := bytes.LastIndex(code, mov)
	if i < 0 || i+7 > len(code) {
		return false
	}
	return img.cString(x86.Addr(int32(le.Uint32(code[i+3:])))) == text
}

// lastUnless is the target of the last test %al,%al; jne of the code at an address, and
// what follows it.
func lastUnless(code []byte, at x86.Addr) (target, next x86.Addr, ok bool) {
	i := bytes.LastIndex(code, []byte{0x84, 0xc0})
	if i < 0 {
		return 0, 0, false
	}
	code, at = code[i+2:], at.Add(int64(i)+2)
	switch {
	case len(code) >= 2 && code[0] == 0x75:
		return at.Add(2 + int64(int8(code[1]))), at + 2, true
	case len(code) >= 6 && code[0] == 0x0f && code[1] == 0x85:
		return rel32(at+6, code[2:]), at + 6, true
	}
	return 0, 0, false
}

// isWhere: the first js from an address on goes there too, and no number 1, which
// means "choose", is loaded before it.
func (img *Image) isWhere(target, at x86.Addr) bool {
	for range maxAfter {
		b := img.bytes(at, decoder.MaxInsnSize)
		i, err := decoder.Decode(b)
		if err != nil || b == nil {
			return false
		}
		next := at.Add(int64(i.Length))
		op := b
		if op[0] == 0x41 { // REX.B: a register from r8 on
			op = op[1:]
		}
		switch {
		case b[0] == 0x78:
			return next.Add(int64(int8(b[1]))) == target
		case b[0] == 0x0f && b[1] == 0x88:
			return rel32(next, b[2:]) == target
		case op[0]&^7 == 0xb8 && le.Uint32(op[1:]) == 1:
			return false
		}
		at = next
	}
	return false
}
