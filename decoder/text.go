package decoder

import (
	"fmt"
	"strings"

	"golang.org/x/arch/x86/x86asm"

	"kprobelab/x86"
)

// Text is the instruction at that address in GNU syntax. Where x86asm names it
// wrong or does not know it, a row of texts.txt has the text; without such a row
// the mnemonic stands alone. Else it is x86asm's text, with the memory operand
// put right.
func (i *Inst) Text(at x86.Addr) string {
	if i.Length == 0 {
		return "(bad)"
	}
	s := i.shape()
	if r := s.findText(); r != nil {
		return s.text(r)
	}
	if i.Encoding == EncPrimary && i.ImmLen == 8 {
		return i.movabsText(&s)
	}
	asm, ok := i.ask()
	switch {
	case !ok:
		return i.Mnemonic()
	case i.VexLen != 0:
		return i.vectorText(&s, asm)
	}
	for n, a := range asm.Args {
		if m, ok := a.(x86asm.Mem); ok && i.DispLen == 4 {
			m.Disp = int64(i.Disp) // x86asm drops its sign
			asm.Args[n] = m
		}
	}
	text := x86asm.GNUSyntax(asm, uint64(at), nil)
	if target, ok := i.Target(at); ok && at == 0 { // x86asm's "no address"
		text = strings.Replace(text, fmt.Sprintf(".%+#x", i.Rel), fmt.Sprintf("%#x", uint64(target)), 1)
	}
	return text
}

// movabsText is a move of an immediate of 8 bytes, or from or to an address of 8
// bytes. x86asm takes both for signed numbers.
func (i *Inst) movabsText(s *shape) string {
	v := uint64(i.Imm())
	if i.Opcode >= 0xB8 {
		return fmt.Sprintf("movabs $%#x,%s", v, s.sized(i.Opcode&7|s.rex&1<<3))
	}
	at, reg := s.segmentName()+fmt.Sprintf("%#x", v), s.sized(0)
	if i.Opcode&1 == 0 {
		reg = "%al"
	}
	if i.Opcode < 0xA2 {
		return "movabs " + at + "," + reg
	}
	return "movabs " + reg + "," + at
}

// Text disassembles the instruction at the start of b, which stands at that
// address: one line in GNU syntax, "(bad)" for what is no instruction.
func Text(b []byte, at x86.Addr) string {
	i, err := Decode(b)
	if err != nil {
		return "(bad)"
	}
	return i.Text(at)
}
