package decoder

import "kprobelab/x86"

// Inst is an instruction as the processor executes it. Offsets count from its
// first byte.
type Inst struct {
	// Length in bytes, 1 to 15.
	Length int
	Class  Class
	// Encoding is the opcode's map, with the prefix that leads to it.
	Encoding Encoding
	Opcode   byte

	// PrefixLen counts the bytes before VEX, EVEX, XOP or the opcode's first
	// byte, REX included.
	PrefixLen uint8
	// REX is the REX prefix that counts, the one directly before the opcode, or D5 where
	// REX2 is one; 0 for none.
	REX byte
	// REX2 is the second byte of a REX2 prefix; valid where REX is D5.
	REX2 byte
	// VexLen is the length of a VEX, EVEX or XOP prefix, 2 to 4, which stands
	// at PrefixLen; 0 for none.
	VexLen uint8
	// OpcodeOff is the offset of the opcode with its escapes, OpcodeLen its length. 3DNow!'s last
	// byte is not included.
	OpcodeOff, OpcodeLen uint8

	HasModRM, HasSIB bool
	ModRM, SIB       byte
	ModRMOff         uint8

	// Displacement and immediate. A length of 0 means that there is none. Two immediates count as
	// one of their common length. 3DNow!'s opcode, which has the place of an immediate, is not
	// counted.
	DispOff, DispLen uint8
	ImmOff, ImmLen   uint8
	Disp             int32

	// HasTarget: it branches to an address, Rel bytes past its end. jmpabs does not: Rel
	// is the address.
	HasTarget bool
	// RIPRelative: its memory operand is relative to its end.
	RIPRelative bool
	// Near16: the target has 16 bits, as 66 makes it on AMD's processors.
	Near16 bool
	Rel    int64

	row  uint16
	code [MaxInsnSize]byte
}

// Decode finds the instruction at the start of b as a processor in 64-bit mode does. It reads no
// more than 15 bytes and does not allocate. The tables of opcodes/ decide: they have the
// instructions that Intel's and AMD's processors execute.
//
// The error is ErrTruncated, ErrTooLong, ErrUnknown, or ErrPrefix and
// ErrOperands, which are kinds of ErrUnknown.
func Decode(b []byte) (Inst, error) { return Processor{}.Decode(b) }

// Decode is as the function of that name, on that processor.
func (p Processor) Decode(b []byte) (Inst, error) {
	b = b[:min(len(b), MaxInsnSize)]
	d := procDecoder{b: b, p: p}
	if err := d.decode(); err != nil {
		return Inst{}, err
	}
	copy(d.i.code[:], b[:d.i.Length])
	return d.i, nil
}

// Bytes are the instruction's own.
func (i *Inst) Bytes() []byte { return i.code[:i.Length] }

// Target returns the target of a direct branch at that address; false for all else.
func (i *Inst) Target(at x86.Addr) (x86.Addr, bool) {
	if i.Encoding == EncRex2 {
		return x86.Addr(i.Rel), true
	}
	target := at.Add(int64(i.Length) + i.Rel)
	if i.Near16 {
		target &= 0xFFFF
	}
	return target, i.HasTarget
}

// Imm is the immediate, sign-extended, or 0. Two immediates are one number, with
// the first in the low bytes.
func (i *Inst) Imm() int64 { return signedAt(i.code[i.ImmOff : i.ImmOff+i.ImmLen]) }

// Extension returns the instruction set extension that introduced the instruction: APX_F if REX2 or
// EVEX gives it more registers.
func (i *Inst) Extension() string {
	if i.usesAPX() {
		return "APX_F"
	}
	return i.opcodeRow().ext
}

// Extensions returns all extensions that a processor needs for the instruction: first the extension
// that introduced the opcode; then APX_F if REX2 or EVEX gives it more registers; the extension of
// the instruction of which EVEX is a new encoding; and AVX512VL for vectors of 16 or 32 bytes if
// EVEX also has 64.
func (i *Inst) Extensions() []string {
	r := i.opcodeRow()
	list := append(make([]string, 0, 3), r.ext)
	switch {
	case r.ext == "APX_F" && i.Encoding.evex():
		if from := promoted()[promotion{i.Encoding, r.mnemonic}]; from != "" {
			list = append(list, from)
		}
	case i.usesAPX() && r.ext != "APX_F":
		list = append(list, "APX_F")
	}
	if i.shortVector(r) {
		list = append(list, "AVX512VL")
	}
	return list
}

// Mnemonic is the instruction's name in Intel's manual.
func (i *Inst) Mnemonic() string { return i.opcodeRow().mnemonic }

func (i *Inst) opcodeRow() *row {
	if i.Length == 0 {
		return &row{}
	}
	return &opcodesOf(i.Encoding).rows[i.row]
}
