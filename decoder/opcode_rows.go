package decoder

import (
	"embed"
	"fmt"
	"strconv"
	"strings"
)

// The rows of opcodes/*.txt are every encoding that a processor executes in
// 64-bit mode, one line each; opcodes/README says how to read them.
//
//go:embed opcodes/*.txt
var opcodeFiles embed.FS

// row is one line of a file: the encodings that it covers and what they have
// in common. The sets are bit masks.
type row struct {
	opcode   byte
	sel      uint64 // of selectors, see selector
	mod      byte
	reg, rm  byte
	form     form
	x86asm   Fault
	ext      string
	mnemonic string
	texts    []template
	line     int
}

// form is the part of a row that the decoder uses.
type form struct {
	flags formFlags
	imm   immKind
	class Class
	row   uint16
}

// formFlags are the properties of an encoding: its operands, and the prefixes that it allows.
type formFlags uint32

const (
	// hasModRM is not in the files: a modrm column other than "-" means it.
	hasModRM formFlags = 1 << iota
	// registerOnly: the operand is a register, whatever mod says ("!").
	registerOnly
	// lockable: LOCK may stand before it.
	lockable
	// usesVvvv: vvvv (and in EVEX V') is an operand; else it has to be 1111.
	usesVvvv
	// vvvvBelow8: vvvv is a mask register.
	vvvvBelow8
	// vsib: the index is a vector, whose fifth bit is EVEX.V', and there is a
	// mask other than k0.
	vsib
	// distinct: the operands have to be different registers.
	distinct
	// regBelow8, rmBelow8: R (in EVEX R' too), B have to be clear.
	regBelow8
	rmBelow8
	// regBelow16: EVEX.R' has to be clear.
	regBelow16
	// takesMask, needsMask, zeroing: EVEX.aaa may be, has to be other than 0;
	// z may be set together with it.
	takesMask
	needsMask
	zeroing
	// takesNF: EVEX.NF may be set, which keeps the flags unchanged. In map 4 the column L says so.
	takesNF
	// conditional: EVEX.V' and aaa are a condition, vvvv the flags where it fails.
	conditional
	// notRSP: ModRM.rm and vvvv are not rsp.
	notRSP
	// regGeneral: ModRM.reg is a general register, whose fifth bit is APX's.
	regGeneral
	// noREX2, noAddress: REX2, 67 may not stand before it.
	noREX2
	noAddress
	// wideAddress: addresses have 64 bits, 67 or not.
	wideAddress
	// withoutMPX: the meaning of the opcode without MPX.
	withoutMPX
	// intelOnly: AMD's processors raise #UD; bareOnAMD: they take no ModRM; cr8: LOCK
	// makes it a move of cr8 there.
	intelOnly
	bareOnAMD
	cr8
)

var flagNames = map[string]formFlags{
	"lock": lockable, "vvvv": usesVvvv, "vvvv7": usesVvvv | vvvvBelow8,
	"vsib":     vsib | takesMask | needsMask,
	"distinct": distinct, "reg7": regBelow8, "rm7": rmBelow8, "reg15": regBelow16, "regk": regBelow8,
	"mask": takesMask, "mask!": takesMask | needsMask, "z": zeroing,
	"nf": takesNF, "scc": usesVvvv | conditional, "norsp": notRSP, "gpr": regGeneral, "norex2": noREX2, "no67": noAddress, "addr64": wideAddress,
	"nompx": withoutMPX, "intel": intelOnly, "amdbare": bareOnAMD, "cr8": cr8,
}

// immKind is the immediates of an encoding.
type immKind uint8

const (
	immNone immKind = iota
	imm1
	imm2
	imm4
	imm8
	immZ     // 2 with operand size 2, else 4
	immV     // 2, 4 or 8, the operand size
	immMoffs // an absolute address, 8 or with 67 4 bytes
	imm2And1 // enter
	imm1And1 // extrq, insertq
	immRel8
	immRel32
	immRelZ // xbegin
	immAbs8 // jmpabs: where it leads, not how far
)

var immNames = map[string]immKind{
	"0": immNone, "1": imm1, "2": imm2, "4": imm4, "8": imm8, "z": immZ, "v": immV, "a": immMoffs,
	"2+1": imm2And1, "1+1": imm1And1, "rel8": immRel8, "rel32": immRel32, "relz": immRelZ, "abs8": immAbs8,
}

// Encoding is an opcode map together with the prefix that leads to it.
type Encoding uint8

// The encodings, which are also the files of opcodes/.
const (
	EncPrimary Encoding = iota
	Enc0F
	Enc0F38
	Enc0F3A
	Enc3DNow
	EncRex2
	EncVex0F
	EncVex0F38
	EncVex0F3A
	EncVex5
	EncVex7
	EncXop8
	EncXop9
	EncXopA
	EncEvex0F
	EncEvex0F38
	EncEvex0F3A
	EncEvex4
	EncEvex5
	EncEvex6
	EncEvex7
	numEncodings
	// EncNone is no map that any processor has.
	EncNone = numEncodings
)

var encodingNames = [...]string{
	"primary", "0f", "0f38", "0f3a", "3dnow", "rex2", "vex0f", "vex0f38", "vex0f3a", "vex5", "vex7",
	"xop8", "xop9", "xopa", "evex0f", "evex0f38", "evex0f3a", "evex4", "evex5", "evex6", "evex7", "none",
}

// String is the name of the encoding's file.
func (e Encoding) String() string { return encodingNames[e] }

func (e Encoding) legacy() bool { return e <= EncRex2 }
func (e Encoding) evex() bool   { return e >= EncEvex0F && e < numEncodings }

// readRows parses the encoding's file.
func readRows(e Encoding) []row {
	name := "opcodes/" + e.String() + ".txt"
	text, err := opcodeFiles.ReadFile(name)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	rows := make([]row, 0, 600)
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		if line == "\n" || line[0] == '#' {
			continue
		}
		r, err := parseRow(e, line)
		if err != nil {
			panic(fmt.Sprintf("BUG: %s:%d: %v", name, n, err))
		}
		r.line, r.form.row = n, uint16(len(rows))
		rows = append(rows, r)
	}
	return rows
}

// textColumn is the last column, which has blanks.
const textColumn = 11

func parseRow(e Encoding, line string) (r row, err error) {
	f := strings.Fields(line)
	if len(f) < textColumn+1 {
		return r, fmt.Errorf("%q: want %d columns", line, textColumn+1)
	}
	op, err := strconv.ParseUint(f[0], 16, 8)
	if err != nil {
		return r, err
	}
	r.opcode = byte(op)
	if r.sel, err = parseSelectors(e, f[1], f[2], f[3], f[4]); err != nil {
		return r, err
	}
	if err = r.parseModRM(f[5]); err != nil {
		return r, err
	}
	imm, ok := immNames[f[6]]
	if !ok {
		return r, fmt.Errorf("no immediate %q", f[6])
	}
	r.form.imm = imm
	for name := range strings.SplitSeq(f[7], ",") {
		flag, ok := flagNames[name]
		if !ok && name != "-" {
			return r, fmt.Errorf("no flag %q", name)
		}
		r.form.flags |= flag
	}
	if r.x86asm, ok = faultOf(f[8]); !ok {
		return r, fmt.Errorf("no state of x86asm %q", f[8])
	}
	r.ext, r.mnemonic = f[9], f[10]
	if r.texts, err = readTemplates(strings.Join(f[textColumn:], " ")); err != nil {
		return r, err
	}
	r.form.class = classOfMnemonic(r.mnemonic, r.form.imm)
	return r, nil
}

// parseModRM reads a column such as "m/0-3.4": a memory operand, reg 0 to 3,
// rm 4.
func (r *row) parseModRM(s string) (err error) {
	r.mod, r.reg, r.rm = 0xF, 0xFF, 0xFF
	if s == "-" {
		return nil
	}
	r.form.flags |= hasModRM
	if rest, ok := strings.CutPrefix(s, "!"); ok {
		r.form.flags |= registerOnly
		s = rest
	}
	mod, rest, ok := strings.Cut(s, "/")
	if !ok {
		return fmt.Errorf("%q: want a slash and reg", s)
	}
	switch {
	case mod == "m":
		r.mod = 7
	case mod == "r":
		r.mod = 8
	case strings.HasPrefix(mod, "mod"):
		if r.mod, err = parseSet(mod[3:], 4); err != nil {
			return err
		}
	case mod != "":
		return fmt.Errorf("no operand %q", mod)
	}
	reg, rm, ok := strings.Cut(rest, ".")
	if ok {
		if r.rm, err = parseSet(rm, 8); err != nil {
			return err
		}
	}
	if reg != "r" {
		r.reg, err = parseSet(reg, 8)
	}
	return err
}

// parseSet is a list of numbers and ranges below size, "*" for all.
func parseSet(s string, size int) (set byte, err error) {
	if s == "*" {
		return byte(1<<size - 1), nil
	}
	for part := range strings.SplitSeq(s, ",") {
		first, last, ok := strings.Cut(part, "-")
		if !ok {
			last = first
		}
		lo, err1 := strconv.ParseUint(first, 10, 8)
		hi, err2 := strconv.ParseUint(last, 10, 8)
		if err1 != nil || err2 != nil || lo > hi || int(hi) >= size {
			return 0, fmt.Errorf("%q: want numbers below %d", s, size)
		}
		for n := lo; n <= hi; n++ {
			set |= 1 << n
		}
	}
	return set, nil
}

// A selector picks among the rows of an opcode:
//
//	legacy      66 present, F3 or F2 (the last one) * 2, W * 8
//	VEX, XOP    pp, W * 4, L * 8
//	EVEX        pp, W * 4, L'L * 8, b * 32; in map 4 NF * 8, ND * 32
const (
	legacySelectors = 16
	vexSelectors    = 16
	evexSelectors   = 64
)

func (e Encoding) selectors() int {
	if e.evex() {
		return evexSelectors
	}
	return legacySelectors
}

// legacyPrefixes are the names of sets of "66 present, F3 or F2 * 2".
var legacyPrefixes = map[string]byte{
	"*": 0x3F, "none": 0x01, "66": 0x02, "np": 0x03,
	"f3": 0x0C, "f3-": 0x04, "66f3": 0x08, "f2": 0x30, "f2-": 0x10, "66f2": 0x20,
	"o32": 0x15, "o16": 0x2A,
}

var vexPrefixes = map[string]byte{"*": 0xF, "none": 1, "66": 2, "f3": 4, "f2": 8}

// parseSelectors is the set of the selectors that the four columns name.
func parseSelectors(e Encoding, prefix, w, l, b string) (set uint64, err error) {
	names := vexPrefixes
	if e.legacy() {
		names = legacyPrefixes
	}
	var prefixes byte
	for name := range strings.SplitSeq(prefix, ",") {
		p, ok := names[name]
		if !ok {
			return 0, fmt.Errorf("no prefix %q", name)
		}
		prefixes |= p
	}
	ws, err1 := parseSet(w, 2)
	ls, err2 := parseSet(l, 4)
	bs, err3 := parseSet(b, 2)
	if err1 != nil || err2 != nil || err3 != nil {
		return 0, fmt.Errorf("column W %q, L %q or b %q: want numbers", w, l, b)
	}
	for n := range e.selectors() {
		in := false
		if e.legacy() {
			in = prefixes>>(n&7)&1 != 0 && ws>>(n>>3)&1 != 0
		} else {
			in = prefixes>>(n&3)&1 != 0 && ws>>(n>>2&1)&1 != 0 && ls>>(n>>3&3)&1 != 0 && bs>>(n>>5)&1 != 0
		}
		if in {
			set |= 1 << n
		}
	}
	return set, nil
}
