package decoder

import (
	"bytes"
	"slices"
)

// Samples are instructions of every row of an encoding, in the rows' order: at least
// one and at most n of each row. They have every prefix, W and L of the row, as far as
// n goes, with operands from both ends and the middle of its sets. Each is 15 bytes
// long, filled up with nops.
func Samples(e Encoding, n int) [][]byte {
	var list [][]byte
	rows := opcodesOf(e).rows
	for i := range rows {
		list = append(list, rows[i].samples(e, n)...)
	}
	return list
}

// Forms are instructions of every row of an encoding: one for each prefix, W, L and b
// that the row has, with a memory operand and with a register, as far as the row has
// both. Each is 15 bytes long, filled up with nops.
func Forms(e Encoding) [][]byte {
	var list [][]byte
	rows := opcodesOf(e).rows
	for i := range rows {
		r := &rows[i]
		modrms := r.modrms()
		registers := slices.IndexFunc(modrms, func(m byte) bool { return m >= 0xC0 })
		for sel := range e.selectors() {
			if r.sel>>sel&1 == 0 {
				continue
			}
			if registers != 0 {
				list = r.form1(list, e, sel, modrms)
			}
			if registers >= 0 {
				list = r.form1(list, e, sel, modrms[registers:])
			}
		}
	}
	return list
}

var nops = bytes.Repeat([]byte{0x90}, MaxInsnSize)

// form1 appends the first of these forms that is an instruction of the row.
func (r *row) form1(list [][]byte, e Encoding, sel int, modrms []byte) [][]byte {
	if e == Enc3DNow { // encode makes its registers alone
		return append(list, append([]byte{0x0F, 0x0F, modrms[0], r.opcode}, nops[4:]...))
	}
	for _, m := range modrms {
		b := r.encode(e, sel, m)
		for len(b) < MaxInsnSize {
			b = append(b, 0x90)
		}
		if r.isRowOf(b, e) {
			return append(list, b)
		}
	}
	return list
}

func (r *row) isRowOf(b []byte, e Encoding) bool {
	i, err := Decode(b)
	return err == nil && i.Encoding == e && &opcodesOf(e).rows[i.row] == r
}

// Row is a line of opcodes/ENCODING.txt: encodings that one instruction has.
type Row struct {
	Encoding Encoding
	// Number counts the encoding's rows from 0.
	Number   int
	Opcode   byte
	Mnemonic string
	// Memory, Register: it has such an operand in ModRM.rm. Both are false without a ModRM. A row
	// that only a Processor without MPX has does not count with a memory operand alone.
	Memory, Register bool
	// Extension is the instruction set extension, by its name in a manual's index; Reference is the
	// manual and the page that describe the row.
	Extension, Reference string
}

// Rows lists the rows of an encoding.
func Rows(e Encoding) []Row {
	var list []Row
	for i, r := range opcodesOf(e).rows {
		has := r.form.flags&hasModRM != 0
		memory := has && r.mod&7 != 0 && r.form.flags&withoutMPX == 0
		list = append(list, Row{e, i, r.opcode, r.mnemonic, memory, has && r.mod&8 != 0, r.ext, reference(&r)})
	}
	return list
}

// RowNumber returns the number of the instruction's row among the rows of its encoding.
func (i *Inst) RowNumber() int { return int(i.row) }

// Encodings lists all encodings.
func Encodings() []Encoding {
	var list []Encoding
	for e := EncPrimary; e < numEncodings; e++ {
		list = append(list, e)
	}
	return list
}

func (r *row) samples(e Encoding, most int) [][]byte {
	var list [][]byte
	modrms := r.modrms()
	per := max(1, most/max(1, r.selectorCount(e)))
	for sel := range e.selectors() {
		if r.sel>>sel&1 == 0 {
			continue
		}
		for n := range min(per, len(modrms)) {
			m := modrms[n*len(modrms)/min(per, len(modrms))]
			b := r.encode(e, sel, m)
			for len(b) < MaxInsnSize {
				b = append(b, 0x90)
			}
			if len(list) < most && r.isRowOf(b, e) {
				list = append(list, b)
			}
		}
	}
	return list
}

func (r *row) selectorCount(e Encoding) (n int) {
	for sel := range e.selectors() {
		n += int(r.sel >> sel & 1)
	}
	return n
}

func (r *row) modrms() []byte {
	if r.form.flags&hasModRM == 0 {
		return []byte{0}
	}
	var list []byte
	for m := range 256 {
		if r.mod>>(m>>6)&1 != 0 && r.reg>>(m>>3&7)&1 != 0 && r.rm>>(m&7)&1 != 0 {
			list = append(list, byte(m))
		}
	}
	return list
}

// encode is an instruction with that selector and ModRM. Operands that have to
// be distinct are.
func (r *row) encode(e Encoding, sel int, m byte) []byte {
	var b []byte
	vvvv := byte(15)
	if r.form.flags&distinct != 0 {
		vvvv = 15 &^ (m>>3&7 ^ m&7 ^ 5)
		if x := 15 &^ vvvv; x == m>>3&7 || x == m&7 {
			vvvv = 15 &^ 6
		}
	}
	pp, w, l := byte(sel&3), byte(sel>>2&1), byte(sel>>3)
	switch {
	case e.legacy():
		b = r.legacyHead(e, sel)
	case e == EncVex0F && w == 0 && m&1 == 0:
		b = []byte{0xC5, 0x80 | vvvv<<3 | l<<2 | pp}
	case e.evex():
		b = []byte{0x62, 0xF0 | evexNumber[e], w<<7 | vvvv<<3 | 4 | pp, l>>2<<4 | l&3<<5 | 8}
		if r.form.flags&needsMask != 0 {
			b[3] |= 1
		}
		if e == EncEvex4 { // NF is in the place of L
			b[3] = l>>2<<4 | l&1<<2 | 8
		}
	case e >= EncXop8:
		b = []byte{0x8F, 0xE8 + byte(e-EncXop8), w<<7 | vvvv<<3 | l<<2 | pp}
	default:
		b = []byte{0xC4, 0xE0 + vexNumber[e], w<<7 | vvvv<<3 | l<<2 | pp}
	}
	if e == Enc3DNow {
		return append(b, 0xC1, r.opcode)
	}
	b = append(b, r.opcode)
	if r.form.flags&hasModRM != 0 {
		b = append(b, m, (m>>3+1)&7<<3) // a SIB whose index is another register
	}
	return b
}

var evexNumber, vexNumber = numbersOf(evexMaps), numbersOf(vexMaps)

func numbersOf(maps [8]Encoding) map[Encoding]byte {
	numbers := map[Encoding]byte{}
	for n, e := range maps {
		if e != EncNone {
			numbers[e] = byte(n)
		}
	}
	return numbers
}

func (r *row) legacyHead(e Encoding, sel int) (b []byte) {
	if sel&1 != 0 {
		b = append(b, 0x66)
	}
	b = append(b, [][]byte{nil, {0xF3}, {0xF2}, {0xF2}}[sel>>1&3]...)
	switch {
	case e == EncRex2:
		b = append(b, rex2Prefix, byte(sel&8))
	case sel&8 != 0:
		b = append(b, 0x48)
	}
	escapes := map[Encoding][]byte{Enc0F: {0x0F}, Enc0F38: {0x0F, 0x38}, Enc0F3A: {0x0F, 0x3A}, Enc3DNow: {0x0F, 0x0F}}
	return slices.Concat(b, escapes[e])
}
