package decoder

// APX: registers 16 to 31, by the REX2 prefix before legacy opcodes and by bits of
// EVEX that were reserved; new instructions in EVEX map 4. Intel APX Architecture
// Specification, 3.1.2 and 3.1.4; SDM Vol. 2, 2.9.

// rex2Prefix is the first byte of REX2. The second has, from the top, M0, R4, X4, B4,
// W, R3, X3, B3.
const rex2Prefix = 0xD5

// rex2Rows are the rows of sixteen opcodes that REX2 may not stand before, a bit each,
// in the primary map and with M0 in map 0F: REX, short branches, moffs and strings,
// loops and near branches; wrmsr and its neighbours, long branches.
var rex2Rows = [2]uint16{1<<0x4 | 1<<0x7 | 1<<0xA | 1<<0xE, 1<<0x3 | 1<<0x8}

// rex2 decodes an instruction that begins with REX2. REX directly before it is #UD, in agreement
// with Intel's XED (XED_ERROR_BAD_REX_PREFIX) and Bitdefender's disassembler (invalid prefix
// sequence); LLVM 22 accepts it.
func (d *procDecoder) rex2(at int) error {
	if d.i.REX != 0 {
		return ErrPrefix
	}
	if at+2 >= len(d.b) {
		return d.short()
	}
	p, op := d.b[at+1], d.b[at+2]
	d.overrides = false // x86asm has no REX2
	d.i.REX, d.i.REX2, d.w = rex2Prefix, p, p&8
	d.i.PrefixLen, d.i.OpcodeOff, d.i.OpcodeLen = uint8(at+2), uint8(at+2), 1
	m, e := p>>7, EncPrimary
	if m != 0 {
		e = Enc0F
	}
	if rex2Rows[m]>>(op>>4)&1 != 0 {
		const jmpabs = 0xA1
		if m != 0 || op != jmpabs {
			return ErrUnknown
		}
		e = EncRex2
	}
	if err := d.legacy(e, op, at+3); err != nil {
		return err
	}
	if d.a32 && d.f.flags&noAddress != 0 {
		return ErrPrefix
	}
	return nil
}

// rexAllowed: the registers that REX or REX2 names exist.
func (d *procDecoder) rexAllowed(flags formFlags) bool {
	rex := d.i.REX
	if rex == rex2Prefix {
		rex = d.i.REX2 & 15
		if flags&noREX2 != 0 || flags&regBelow16 != 0 && d.i.REX2&0x40 != 0 {
			return false
		}
	}
	return (rex&4 == 0 || flags&regBelow8 == 0) && (rex&1 == 0 || flags&rmBelow8 == 0)
}

// apxBits: an EVEX prefix has B4 or X4.
func apxBits(b []byte) bool {
	return len(b) > 2 && (b[1]&8 != 0 || b[2]&4 == 0)
}

// usesAPX reports whether only a processor with APX executes the bytes in this way.
func (i *Inst) usesAPX() bool {
	if i.VexLen != 4 {
		return i.REX == rex2Prefix
	}
	p := i.code[i.PrefixLen:]
	return apxBits(p) || p[1]&0x10 == 0 && i.opcodeRow().form.flags&regGeneral != 0
}

// legacyPrefixes are the bytes before the opcode and VEX that are prefixes of one byte,
// REX too.
func (i *Inst) legacyPrefixes() []byte {
	n := i.PrefixLen
	if i.REX == rex2Prefix {
		n -= 2
	}
	return i.code[:n]
}
