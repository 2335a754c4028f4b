package decoder

import (
	"fmt"
	"regexp"
	"strings"

	"golang.org/x/arch/x86/x86asm"
)

// Text of VEX and EVEX instructions: x86asm's, with the memory operand, prefixes
// and broadcasts put right.

// placeholder is an absolute address that stands for the memory operand in
// x86asm's text, which may see a segment in the bytes of the prefix.
const placeholder = 0x7eaddeadbeadbead

var placeholders = regexp.MustCompile(fmt.Sprintf("(%%[c-gs]s:)*%#x", int64(placeholder)))

// vectorText is the instruction in GNU syntax from x86asm's view of it.
func (i *Inst) vectorText(s *shape, asm x86asm.Inst) string {
	asm.Broadcast = false
	if asm.Op == x86asm.VPEXTRW_C5 {
		asm.Op = x86asm.VPEXTRW
	}
	short, memory := i.Encoding.evex() && i.vectorSize() == 16, ""
	for n, a := range asm.Args {
		switch a := a.(type) {
		case x86asm.Mem:
			memory = i.vectorMemory(s, a) + i.broadcast()
			asm.Args[n] = x86asm.Mem{Disp: placeholder}
		case x86asm.Reg:
			if short && a >= x86asm.Y0 && a <= x86asm.Y31 { // half of 16 bytes
				asm.Args[n] = a - x86asm.Y0 + x86asm.X0
			}
		}
	}
	if reg, ok := asm.Args[0].(x86asm.Reg); ok && i.fromMask() {
		return fmt.Sprintf("%s %%k%d,%s", i.Mnemonic(), i.ModRM&7, vectorRegister(reg))
	}
	return placeholders.ReplaceAllLiteralString(x86asm.GNUSyntax(asm, 0, nil), memory)
}

// fromMask: the source is a mask register. x86asm takes it for the mask of the
// write.
func (i *Inst) fromMask() bool {
	return strings.HasPrefix(i.Mnemonic(), "vpmovm2") || strings.HasPrefix(i.Mnemonic(), "vpbroadcastm")
}

// vectorSize is the bytes of a vector as EVEX.L'L says.
func (i *Inst) vectorSize() int { return 16 << (i.code[i.PrefixLen+3] >> 5 & 3) }

// broadcast is how often EVEX.b repeats an element of memory: as many as the
// wider of source and destination fit into a vector. Of half-precision
// instructions, those of map 3 come here.
func (i *Inst) broadcast() string {
	if !i.Encoding.evex() || i.code[i.PrefixLen+3]&0x10 == 0 {
		return ""
	}
	m, element := i.Mnemonic(), 4
	switch {
	case i.code[i.PrefixLen+2]&0x80 != 0, strings.HasSuffix(m, "2pd"), strings.HasSuffix(m, "2qq"), strings.HasSuffix(m, "2uqq"):
		element = 8
	case strings.HasSuffix(m, "ph"):
		element = 2
	}
	return fmt.Sprintf("{1to%d}", i.vectorSize()/element)
}

// vectorMemory is the memory operand. x86asm has the scaled displacement and the
// registers, but not RIP, and never registers of 32 bits.
func (i *Inst) vectorMemory(s *shape, m x86asm.Mem) string {
	var b strings.Builder
	b.WriteString(s.segmentName())
	base, index := "", ""
	switch {
	case i.RIPRelative:
		base = "%" + s.ipName()
	case m.Base != 0:
		base = general(byte(m.Base-x86asm.RAX), !s.addr32)
	}
	switch {
	case m.Index >= x86asm.RAX && m.Index <= x86asm.R15:
		index = general(byte(m.Index-x86asm.RAX), !s.addr32)
	case m.Index != 0:
		index = vectorRegister(m.Index)
	case i.HasSIB:
		index = noIndex(i.SIB, base != "", s.addr32)
	}
	if m.Disp != 0 || base+index == "" {
		fmt.Fprintf(&b, "%#x", m.Disp)
	}
	switch {
	case index != "":
		fmt.Fprintf(&b, "(%s,%s,%d)", base, index, max(m.Scale, 1))
	case base != "":
		fmt.Fprintf(&b, "(%s)", base)
	}
	return b.String()
}

// vectorRegister is the name of xmm0 to zmm31.
func vectorRegister(r x86asm.Reg) string {
	name := strings.ToLower(r.String())
	return "%" + name[:1] + "mm" + name[1:]
}

// ask is X86asm. Where that knows nothing, it is its answer for the same
// instruction in plain form, in which x86asm knows most rows: without prefixes
// before VEX or EVEX, and with 0 in the fields that the row ignores, which are
// a scalar's L or W or both.
func (i *Inst) ask() (x86asm.Inst, bool) {
	asm, ok := i.X86asm()
	if ok || i.VexLen < 2 {
		return asm, ok
	}
	p, err := Decode(i.code[i.PrefixLen:i.Length])
	if err != nil {
		return asm, false
	}
	if asm, ok = p.X86asm(); ok {
		return asm, true
	}
	noL, noW := p.without(p.lengthField()), p.without(p.wideField())
	both := noL.without(noL.wideField())
	for _, form := range []*Inst{&noL, &noW, &both} {
		if asm, ok = form.X86asm(); ok {
			return asm, true
		}
	}
	return asm, false
}

// lengthField is the byte and the bits of L of a scalar; none where L says
// something: a vector's length, a rounding mode.
func (i *Inst) lengthField() (at uint8, bits byte) {
	at = i.VexLen - 1
	switch {
	case !i.scalar() || i.Encoding.evex() && i.code[at]&0x10 != 0:
		return at, 0
	case i.Encoding.evex():
		return at, 0x60
	}
	return at, 0x04
}

// wideField is the byte and the bit of W, which the short VEX prefix lacks.
func (i *Inst) wideField() (at uint8, bits byte) {
	if i.VexLen == 2 {
		return 0, 0
	}
	return 2, 0x80
}

// without is the instruction with 0 for these bits of a byte of its prefix. It
// is unchanged where that would make it another row's.
func (i *Inst) without(at uint8, bits byte) Inst {
	code := i.code
	code[at] &^= bits
	if p, err := Decode(code[:i.Length]); err == nil && p.row == i.row && p.Encoding == i.Encoding {
		return p
	}
	return *i
}

// scalar: the instruction's vector operands are one element, as its name says.
func (i *Inst) scalar() bool {
	m := i.Mnemonic()
	if strings.HasPrefix(m, "vp") { // packed integers, signed ones with an s
		return false
	}
	for _, kind := range []string{"ss", "sd", "sh"} {
		if strings.HasSuffix(m, kind) || strings.Contains(m, kind+"2") {
			return true
		}
	}
	return false
}
