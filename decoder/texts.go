package decoder

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed texts.txt
var textRows string

// textRow is one row of texts.txt.
type textRow struct {
	enc    Encoding
	pfx    int // or anyPrefix
	opcode byte
	form   textForm
	modrm  byte // the byte, or reg
	imm    int  // or textImmZ
	text   string
	line   int
}

const (
	anyPrefix = -1
	// textImmZ is an immediate of 2 bytes with operand size 2, else 4.
	textImmZ = -1
)

// textForm is how a row restricts ModRM.
type textForm uint8

const (
	formNone     textForm = iota // no ModRM
	formAny                      // any
	formReg                      // ModRM.reg
	formRegister                 // ModRM.reg, register operand
	formMemory                   // ModRM.reg, memory operand
	formExact                    // the whole byte
	formForced                   // a register operand although mod says memory
)

// texts is indexed by Encoding and opcode.
var texts = mustTexts(textRows)

type textIndex [numEncodings][256][]textRow

var textEncodings = map[string]Encoding{
	"primary": EncPrimary, "0f": Enc0F, "0f38": Enc0F38, "0f3a": Enc0F3A, "3dnow": Enc3DNow,
	"vex0f": EncVex0F, "vex0f38": EncVex0F38, "vex0f3a": EncVex0F3A,
	"evex0f": EncEvex0F, "evex0f38": EncEvex0F38, "evex0f3a": EncEvex0F3A,
	"xop8": EncXop8, "xop9": EncXop9, "xopa": EncXopA,
}

func mustTexts(text string) *textIndex {
	index := new(textIndex)
	for n, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		o, err := parseText(line)
		if err != nil {
			panic(fmt.Sprintf("BUG: decoder texts: line %d: %v", n+1, err))
		}
		o.line = n + 1
		index[o.enc][o.opcode] = append(index[o.enc][o.opcode], o)
	}
	return index
}

func parseText(line string) (o textRow, err error) {
	f := strings.Fields(line)
	if len(f) < 6 {
		return o, fmt.Errorf("%q: want map, prefix, opcode, modrm, imm and text", line)
	}
	enc, ok := textEncodings[f[0]]
	pfx, known := pfxNames[f[1]]
	if f[1] == "*" {
		pfx, known = anyPrefix, true
	}
	op, opErr := strconv.ParseUint(f[2], 16, 8)
	imm, immErr := strconv.Atoi(f[4])
	if f[4] == "z" {
		imm, immErr = textImmZ, nil
	}
	if !ok || !known || opErr != nil || immErr != nil {
		return o, fmt.Errorf("%q: no such map, prefix, opcode or size", line)
	}
	o = textRow{enc: enc, pfx: pfx, opcode: byte(op), imm: imm, text: strings.Join(f[5:], " ")}
	o.form, o.modrm, err = parseForm(f[3])
	return o, err
}

func parseForm(s string) (textForm, byte, error) {
	switch s {
	case "-":
		return formNone, 0, nil
	case "/r":
		return formAny, 0, nil
	case "!/r":
		return formForced, 0, nil
	}
	kinds := map[string]textForm{"/": formReg, "r/": formRegister, "m/": formMemory}
	if head, reg := s[:len(s)-1], s[len(s)-1]; kinds[head] != 0 && reg >= '0' && reg <= '7' {
		return kinds[head], reg - '0', nil
	}
	v, err := strconv.ParseUint(s, 16, 8)
	return formExact, byte(v), err
}

// findText returns the row for the instruction, nil where none applies.
func (s *shape) findText() *textRow {
	rows := texts[s.enc][s.opcode]
	for i := range rows {
		o := &rows[i]
		if !o.matches(s) {
			continue
		}
		if o.form == formForced {
			s.modrm |= 0xC0
		}
		if s.end+s.immSize(o) > len(s.b) {
			return nil
		}
		return o
	}
	return nil
}

// immSize is the size of the row's immediate in this instruction.
func (s *shape) immSize(o *textRow) int {
	switch {
	case o.imm != textImmZ:
		return o.imm
	case s.size16 && s.rex&8 == 0:
		return 2
	}
	return 4
}

func (o *textRow) matches(s *shape) bool {
	if o.pfx != anyPrefix && o.pfx != s.pfx {
		return false
	}
	reg, register := s.modrm>>3&7, s.modrm>>6 == 3
	switch o.form {
	case formNone, formAny:
		return true
	case formExact:
		return s.hasModRM && s.modrm == o.modrm
	case formRegister:
		return s.hasModRM && reg == o.modrm && register
	case formForced:
		return s.hasModRM && !register
	case formMemory:
		return s.hasModRM && reg == o.modrm && !register
	default:
		return s.hasModRM && reg == o.modrm
	}
}
