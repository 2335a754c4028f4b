package decoder

import (
	"fmt"
	"strings"
)

// Text of instructions that only the texts know, in GNU syntax.

var gnu64 = [16]string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}

var gnu32 = [16]string{"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi",
	"r8d", "r9d", "r10d", "r11d", "r12d", "r13d", "r14d", "r15d"}

var gnu16 = [16]string{"ax", "cx", "dx", "bx", "sp", "bp", "si", "di",
	"r8w", "r9w", "r10w", "r11w", "r12w", "r13w", "r14w", "r15w"}

var gnu8 = [16]string{"al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil",
	"r8b", "r9b", "r10b", "r11b", "r12b", "r13b", "r14b", "r15b"}

// gnu8High are numbers 4 to 7 without a REX prefix.
var gnu8High = [8]string{4: "ah", 5: "ch", 6: "dh", 7: "bh"}

// operandKinds are the letters that may follow a percent sign in a
// template. Small letters belong to register names.
const operandKinds = "EGQRDBXYNPMCVIJ"

// text fills in the operands of a row's template.
func (s *shape) text(o *textRow) string {
	var b strings.Builder
	for i := 0; i < len(o.text); i++ {
		if o.text[i] != '%' || i+1 == len(o.text) || !strings.ContainsRune(operandKinds, rune(o.text[i+1])) {
			b.WriteByte(o.text[i])
			continue
		}
		i++
		b.WriteString(s.operand(o.text[i], o))
	}
	return b.String()
}

// operand is one operand of a template.
func (s *shape) operand(kind byte, o *textRow) string {
	reg := s.modrm>>3&7 | s.rex&4<<1
	switch kind {
	case 'G':
		if strings.Contains(o.text, "%M,%G") { // an address: always 64-bit
			return general(reg, true)
		}
		return s.sized(reg)
	case 'Y':
		return fmt.Sprintf("%%xmm%d", reg)
	case 'P':
		return fmt.Sprintf("%%mm%d", reg&7)
	case 'C':
		return fmt.Sprintf("%%cr%d", reg)
	case 'V':
		return fmt.Sprintf("%%db%d", reg)
	case 'R':
		return general(reg, true)
	case 'I':
		if strings.Contains(o.text, "%J") {
			return fmt.Sprintf("$%#x", s.b[s.end])
		}
		return fmt.Sprintf("$%#x", uint64(signedAt(s.b[s.end:s.end+s.immSize(o)])))
	case 'J':
		return fmt.Sprintf("$%#x", s.b[s.end+1])
	}
	if s.modrm>>6 != 3 {
		return s.memory()
	}
	return s.register(kind, s.modrm&7|s.rex&1<<3)
}

// register is ModRM.rm as a register of the kind's class.
func (s *shape) register(kind, n byte) string {
	switch kind {
	case 'Q':
		return general(n, true)
	case 'D':
		return general(n, false)
	case 'B':
		if !s.hasREX && n >= 4 {
			return "%" + gnu8High[n&7]
		}
		return "%" + gnu8[n]
	case 'X':
		return fmt.Sprintf("%%xmm%d", n)
	case 'N':
		return fmt.Sprintf("%%mm%d", n&7)
	case 'M':
		return "(bad)"
	}
	return s.sized(n)
}

// sized is a general register of the operand size. A 66 that belongs to the
// opcode does not make it smaller.
func (s *shape) sized(n byte) string {
	wide := s.rex&8 != 0
	if s.size16 && !wide && s.enc <= Enc0F {
		return "%" + gnu16[n]
	}
	return general(n, wide)
}

func general(n byte, wide bool) string {
	if wide {
		return "%" + gnu64[n]
	}
	return "%" + gnu32[n]
}

// memory is a memory operand: %seg:disp(base,index,scale).
func (s *shape) memory() string {
	var b strings.Builder
	b.WriteString(s.segmentName())
	base, index := s.baseAndIndex()
	switch {
	case s.dispLen != 0 && s.disp < 0 && base+index != "":
		fmt.Fprintf(&b, "-%#x", -s.disp)
	case s.dispLen != 0:
		fmt.Fprintf(&b, "%#x", uint64(s.disp))
	}
	if base+index != "" {
		b.WriteString("(" + base + index + ")")
	}
	return b.String()
}

// segmentName is the segment that has an address of its own, with its colon.
func (s *shape) segmentName() string {
	switch s.segment {
	case 0x64:
		return "%fs:"
	case 0x65:
		return "%gs:"
	}
	return ""
}

func (s *shape) baseAndIndex() (base, index string) {
	mod, rm := s.modrm>>6, s.modrm&7
	if rm != 4 {
		if mod == 0 && rm == 5 {
			return "%" + s.ipName(), ""
		}
		return general(rm|s.rex&1<<3, !s.addr32), ""
	}
	if s.sib&7 != 5 || mod != 0 {
		base = general(s.sib&7|s.rex&1<<3, !s.addr32)
	}
	name := noIndex(s.sib, base != "", s.addr32)
	if n := s.sib>>3&7 | s.rex&2<<2; n != 4 {
		name = general(n, !s.addr32)
	}
	if name != "" {
		index = fmt.Sprintf(",%s,%d", name, 1<<(s.sib>>6))
	}
	return base, index
}

// noIndex is what stands for the index of a SIB without one: nothing where no
// shorter encoding says the same, else the assembler's name for it.
func noIndex(sib byte, base, addr32 bool) string {
	switch {
	case sib>>6 == 0 && (sib&7 == 4 || !base):
		return ""
	case addr32:
		return "%eiz"
	}
	return "%riz"
}

func (s *shape) ipName() string {
	if s.addr32 {
		return "eip"
	}
	return "rip"
}
