package decoder

import (
	"fmt"
	"strings"
)

// A template is the GNU text of a row: the mnemonic with its operands, for the
// instructions that its guard lets through. opcodes/README has the notation.
type template struct {
	guard byte // 0 for all; m, r, w, o, a, B, P
	// pseudo is {vex} or {evex}, which select an encoding that the assembler would not choose, or
	// data16 if it has no name for the instruction.
	pseudo   string
	mnemonic string
	// suffix is the kind of the letter after the mnemonic, 0 for none. memory: only
	// where the operand is memory.
	suffix       byte
	suffixMemory bool
	operands     []operand

	// predicates are the names that an immediate puts into the mnemonic, at predicateAt; nil if it
	// puts none.
	predicates  map[byte]string
	predicateAt int

	// What of the prefixes the text says: 66, REX.W, and the registers that REX
	// extends. The rest is written out before the mnemonic.
	usesSize, usesW, usesReg, usesRm bool
	usesMemory                       bool
	// usesSegment: a segment prefix changes that memory, as it does any of ModRM.
	usesSegment bool
	// absolute: it has an address alone, of which the text does not show the size.
	absolute bool
	// usesAddress: so does 67 without an operand in memory.
	usesAddress bool
	// usesModRM: it has an operand of ModRM.
	usesModRM bool
	// rmSize, rmW: so does ModRM.rm where it is a register.
	rmSize, rmW bool
}

// operand is one operand of a template.
type operand struct {
	// source is the place of the operand, a letter of GERMHOLIJA%DSXF: ModRM.reg, ModRM.rm as
	// register or memory, as register, as memory; vvvv; the opcode's low bits; the immediate's high
	// bits; an immediate; a branch's target; an absolute address; a register with a number; the
	// memory of string instructions; the rounding.
	source byte
	kind   byte // of the register's class or the immediate, see template.go
	star   bool
	// scale is the kind of the unit of a short EVEX displacement, and of the memory of a broadcast;
	// element is the size of a broadcast element in bytes, index the kind of a vector index; 0 for
	// none.
	scale, index byte
	element      uint8
	literal      string
}

// Kinds of register classes that depend on prefixes, beside the classes' own
// letters (see registerClasses):
//
//	v  the operand size     y  32 bits, with W 64     z  16 or 32 bits
//	8  64 bits, with 66 16  V  a vector of L          h  half of it, f a quarter
//	a  an address: 64 bits, with 67 32
const (
	registerKinds  = "abwdqxYZmktscDnTvyz8Vhfg"
	immediateKinds = "bsaezQvwdq"
	suffixKinds    = "bwlqsvyWQxX"
)

// immediateNames are the notation's names of immediates.
var immediateNames = map[string]byte{
	"b": 'b', "q": 'q', "sv": 's', "s2": 'e', "zv": 'z', "zq": 'Q', "v": 'v', "w": 'w', "d": 'd', "n4": '4', "B2": '2', "w3": '3',
	"8": '8', "32": 'p', "c": 'c', "o": 'o', "l": 'l',
}

// readTemplates parses the last column of a row.
func readTemplates(text string) ([]template, error) {
	var list []template
	for alternative := range strings.SplitSeq(text, " | ") {
		t, err := readTemplate(strings.TrimSpace(alternative))
		if err != nil {
			return nil, fmt.Errorf("text %q: %w", text, err)
		}
		list = append(list, t)
	}
	if list[len(list)-1].guard != 0 {
		return nil, fmt.Errorf("text %q: the last alternative has a guard", text)
	}
	return list, nil
}

func readTemplate(text string) (t template, err error) {
	if guard, rest, ok := strings.Cut(text, ": "); ok {
		if len(guard) != 1 || !strings.Contains("mrwoaBP", guard) {
			return t, fmt.Errorf("no guard %q", guard)
		}
		t.guard, text = guard[0], rest
	}
	if strings.HasPrefix(text, "{") || strings.HasPrefix(text, "data16 ") {
		t.pseudo, text, _ = strings.Cut(text, " ")
	}
	name, operands, _ := strings.Cut(text, " ")
	name, suffix, ok := strings.Cut(name, "{")
	if t.mnemonic = name; name == "" {
		return t, fmt.Errorf("no mnemonic")
	}
	if ok {
		suffix = strings.TrimSuffix(suffix, "}")
		suffix, t.suffixMemory = strings.CutSuffix(suffix, "m")
		if len(suffix) != 1 || !strings.Contains(suffixKinds, suffix) {
			return t, fmt.Errorf("no suffix %q", suffix)
		}
		t.suffix = suffix[0]
	}
	if operands != "" {
		for s := range strings.SplitSeq(operands, ",") {
			o, err := readOperand(s)
			if err != nil {
				return t, err
			}
			t.operands = append(t.operands, o)
		}
	}
	t.readPredicate()
	t.findUses()
	return t, nil
}

func readOperand(s string) (o operand, err error) {
	unknown := fmt.Errorf("no operand %q", s)
	switch s {
	case "DI", "SI", "J", "A":
		return operand{source: s[0]}, nil
	case "BX":
		return operand{source: 'X'}, nil
	case "{er}", "{sae}":
		return operand{source: 'F', kind: s[1]}, nil
	case "":
		return o, unknown
	}
	if n := s[len(s)-1]; s[0] == '%' && s[1] == '0' && len(s) == 3 && strings.Contains(registerKinds, string(n)) {
		return operand{source: '%', kind: n}, nil
	}
	if strings.ContainsAny(s[:1], "%$(") {
		return operand{literal: s}, nil
	}
	s, o.star = strings.CutPrefix(s, "*")
	s, index, _ := strings.Cut(s, "~")
	s, scale, _ := strings.Cut(s, "@")
	scale, element, _ := strings.Cut(scale, "/")
	if s == "" || !strings.Contains("GERMHOLI", s[:1]) {
		return o, unknown
	}
	o.source = s[0]
	if o.source == 'I' {
		o.kind = immediateNames[s[1:]]
	} else if len(s) == 2 && strings.Contains(registerKinds, s[1:]) {
		o.kind = s[1]
	}
	if o.kind == 0 && s != "M" {
		return o, unknown
	}
	if o.scale = scaleNames[scale]; scale != "" && o.scale == 0 {
		return o, unknown
	}
	if element != "" {
		if o.element = element[0] - '0'; len(element) != 1 {
			return o, unknown
		}
	}
	if index != "" {
		o.index = index[0]
	}
	return o, nil
}

// scaleNames are the notation's names of sizes of memory: bytes; V, h, f, e the
// vector, half of it, a quarter, an eighth; y 4 or with W 8; dup is vmovddup's.
var scaleNames = map[string]byte{
	"1": 1, "2": 2, "4": 4, "8": 8, "16": 16, "32": 32, "64": 64,
	"V": 'V', "h": 'h', "f": 'f', "e": 'e', "y": 'y', "dup": 'u',
}

// findUses finds the prefixes that the text shows.
func (t *template) findUses() {
	t.usesSize = t.guard == 'o' || t.suffix == 'v' || t.suffix == 'W'
	t.usesW = t.guard == 'w' || t.guard == 'P' || t.suffix == 'v' || t.suffix == 'y' || t.suffix == 'Q'
	t.usesAddress = t.guard == 'a'
	for _, o := range t.operands {
		t.usesAddress = t.usesAddress || o.kind == 'a' && o.source != 'I'
		size, w := strings.ContainsRune("vz8gse", rune(o.kind)), strings.ContainsRune("vys", rune(o.kind))
		switch {
		case o.source == 'I' && o.kind != 'v' && o.kind != 's' && o.kind != 'z', o.kind == 's' && o.source != 'I':
		case o.source == 'E':
			t.rmSize, t.rmW = t.rmSize || size, t.rmW || w
		default:
			t.usesSize, t.usesW = t.usesSize || size, t.usesW || w
		}
		t.usesModRM = t.usesModRM || strings.ContainsRune("GERM", rune(o.source))
		switch o.source {
		case 'G':
			t.usesReg = t.usesReg || !strings.ContainsRune("smktT", rune(o.kind))
		case 'E', 'R', 'O':
			t.usesRm = t.usesRm || !strings.ContainsRune("mktT", rune(o.kind))
		case 'D', 'S', 'X', 'A', 'M':
			t.usesMemory = true
			t.usesSegment = t.usesSegment || o.source != 'D'
			t.absolute = t.absolute || o.source == 'A'
		}
	}
}
