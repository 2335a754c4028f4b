package decoder

import (
	"fmt"
	"strings"
)

// Text of instructions that only the overrides know, in GNU syntax.

var gnu64 = [16]string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"}

var gnu32 = [16]string{"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi",
	"r8d", "r9d", "r10d", "r11d", "r12d", "r13d", "r14d", "r15d"}

// text fills in the operands of a row's template.
func (s *shape) text(o *override) string {
	var b strings.Builder
	for i := 0; i < len(o.text); i++ {
		if o.text[i] != '%' || i+1 == len(o.text) || !strings.ContainsRune("EGQDXYNPMI", rune(o.text[i+1])) {
			b.WriteByte(o.text[i])
			continue
		}
		i++
		b.WriteString(s.operand(o.text[i], o))
	}
	return b.String()
}

func (s *shape) operand(kind byte, o *override) string {
	wide := s.rex&8 != 0
	reg := s.modrm>>3&7 | s.rex&4<<1
	switch kind {
	case 'G':
		return general(reg, wide || strings.Contains(o.text, "%M,%G"))
	case 'Y':
		return fmt.Sprintf("%%xmm%d", reg)
	case 'P':
		return fmt.Sprintf("%%mm%d", reg&7)
	case 'I':
		return fmt.Sprintf("$%#x", s.b[s.end])
	}
	if s.modrm>>6 != 3 {
		return s.memory()
	}
	rm := s.modrm&7 | s.rex&1<<3
	switch kind {
	case 'Q':
		return general(rm, true)
	case 'D':
		return general(rm, false)
	case 'X':
		return fmt.Sprintf("%%xmm%d", rm)
	case 'N':
		return fmt.Sprintf("%%mm%d", rm&7)
	case 'M':
		return "(bad)"
	}
	return general(rm, wide)
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
	switch s.segment {
	case 0x64:
		b.WriteString("%fs:")
	case 0x65:
		b.WriteString("%gs:")
	}
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
	if n := s.sib>>3&7 | s.rex&2<<2; n != 4 {
		index = fmt.Sprintf(",%s,%d", general(n, !s.addr32), 1<<(s.sib>>6))
	}
	return base, index
}

func (s *shape) ipName() string {
	if s.addr32 {
		return "eip"
	}
	return "rip"
}
