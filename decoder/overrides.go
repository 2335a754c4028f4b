package decoder

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"
)

//go:embed overrides.txt
var overridesText string

// override is one row of overrides.txt.
type override struct {
	enc    encoding
	pfx    int  // or anyPrefix
	opcode byte // for all, where anyOpcode
	form   form
	modrm  byte // the byte, or reg
	imm    int  // or immZ
	text   string
	line   int
}

const (
	anyPrefix = -1
	// immZ is an immediate of 2 bytes with operand size 2, else 4.
	immZ = -1
)

// form is how a row restricts ModRM.
type form uint8

const (
	formNone     form = iota // no ModRM
	formAny                  // any
	formReg                  // ModRM.reg
	formRegister             // ModRM.reg, register operand
	formMemory               // ModRM.reg, memory operand
	formExact                // the whole byte
	formForced               // a register operand although mod says memory
)

// overrides is indexed by encoding and opcode.
var overrides = mustOverrides(overridesText)

type overrideIndex [numEncodings][256][]override

var encNames = map[string]encoding{
	"primary": encPrimary, "0f": enc0F, "0f38": enc0F38, "0f3a": enc0F3A, "3dnow": enc3DNow,
	"vex0f": encVex0F, "vex0f38": encVex0F38, "vex0f3a": encVex0F3A,
	"evex0f": encEvex0F, "evex0f38": encEvex0F38, "evex0f3a": encEvex0F3A,
	"xop8": encXop8, "xop9": encXop9, "xopa": encXopA,
}

func mustOverrides(text string) *overrideIndex {
	index := new(overrideIndex)
	for n, line := range strings.Split(text, "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		o, anyOpcode, err := parseOverride(line)
		if err != nil {
			panic(fmt.Sprintf("BUG: decoder overrides: line %d: %v", n+1, err))
		}
		o.line = n + 1
		for op := range 256 {
			if anyOpcode || byte(op) == o.opcode {
				index[o.enc][op] = append(index[o.enc][op], o)
			}
		}
	}
	return index
}

func parseOverride(line string) (o override, anyOpcode bool, err error) {
	f := strings.Fields(line)
	if len(f) < 6 {
		return o, false, fmt.Errorf("%q: want map, prefix, opcode, modrm, imm and text", line)
	}
	enc, ok := encNames[f[0]]
	pfx, known := pfxNames[f[1]]
	if f[1] == "*" {
		pfx, known = anyPrefix, true
	}
	op, opErr := strconv.ParseUint(f[2], 16, 8)
	imm, immErr := strconv.Atoi(f[4])
	if f[4] == "z" {
		imm, immErr = immZ, nil
	}
	if anyOpcode = f[2] == "*"; anyOpcode {
		opErr = nil
	}
	if !ok || !known || opErr != nil || immErr != nil {
		return o, false, fmt.Errorf("%q: no such map, prefix, opcode or size", line)
	}
	o = override{enc: enc, pfx: pfx, opcode: byte(op), imm: imm, text: strings.Join(f[5:], " ")}
	o.form, o.modrm, err = parseForm(f[3])
	return o, anyOpcode, err
}

func parseForm(s string) (form, byte, error) {
	switch s {
	case "-":
		return formNone, 0, nil
	case "/r":
		return formAny, 0, nil
	case "!/r":
		return formForced, 0, nil
	}
	kinds := map[string]form{"/": formReg, "r/": formRegister, "m/": formMemory}
	if head, reg := s[:len(s)-1], s[len(s)-1]; kinds[head] != 0 && reg >= '0' && reg <= '7' {
		return kinds[head], reg - '0', nil
	}
	v, err := strconv.ParseUint(s, 16, 8)
	return formExact, byte(v), err
}

// findOverride returns the row for the instruction and its length, nil where
// none applies. An instruction that is cut off has length 0.
func (s *shape) findOverride() (*override, int) {
	if s.enc >= numEncodings {
		return nil, 0
	}
	if s.enc == enc3DNow {
		return s.find3DNow()
	}
	rows := overrides[s.enc][s.opcode]
	if len(rows) == 0 {
		return nil, 0
	}
	full := s.takeModRM()
	for i := range rows {
		o := &rows[i]
		if !o.matches(s) {
			continue
		}
		switch o.form {
		case formNone:
			s.hasModRM, s.end, s.dispLen, full = false, s.at, 0, true
		case formForced:
			s.modrm |= 0xC0
			s.end, s.dispLen, full = s.at+1, 0, true
		}
		end := s.end + s.immSize(o)
		if !full || end > len(s.b) {
			return o, 0
		}
		return o, end
	}
	return nil, 0
}

// immSize is the size of the row's immediate in this instruction.
func (s *shape) immSize(o *override) int {
	switch {
	case o.imm != immZ:
		return o.imm
	case s.size16 && s.rex&8 == 0:
		return 2
	}
	return 4
}

// find3DNow looks for the opcode behind the operands.
func (s *shape) find3DNow() (*override, int) {
	if !s.takeModRM() || s.end >= len(s.b) {
		return nil, 0
	}
	rows := overrides[enc3DNow][s.b[s.end]]
	if len(rows) == 0 {
		return nil, 0
	}
	return &rows[0], s.end + 1
}

func (o *override) matches(s *shape) bool {
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
