package decoder

// vexFields are what VEX, EVEX and XOP hold besides the opcode's map. The
// prefixes store some bits of register numbers inverted; here they are not.
type vexFields struct {
	pp, l, w byte
	// reg, rm and index bits 3 and 4 of the register numbers.
	regHigh, rmHigh, indexHigh byte
	vvvv                       byte // with EVEX 5 bits
	aaa                        byte
	z, b                       bool
}

// vexed decodes what begins with VEX, EVEX or XOP. SDM Vol. 2, 2.3.2 and
// 2.7.3: 66, F3, F2, LOCK or REX before them are #UD.
func (d *procDecoder) vexed(at int) error {
	if at > 0 { // x86asm refuses every prefix there, the processor does not
		d.overrides = false
	}
	if d.size|d.rep != 0 || d.lock || d.i.REX != 0 {
		return ErrPrefix
	}
	n := 3
	switch d.b[at] {
	case 0xC5:
		n = 2
	case 0x62:
		n = 4
	}
	if at+n >= len(d.b) {
		return d.short()
	}
	d.i.VexLen, d.i.OpcodeOff, d.i.OpcodeLen = uint8(n), uint8(at+n), 1
	p := d.b[at : at+n]
	e, ok := d.v.read(p)
	if !ok {
		return ErrUnknown
	}
	return d.vexOpcode(e, d.b[at+n], at+n+1)
}

// read takes the prefix apart; false for a map that does not exist, or for
// reserved bits with the wrong value.
func (v *vexFields) read(p []byte) (Encoding, bool) {
	if len(p) == 2 {
		v.regHigh = ^p[1] >> 4 & 8
		v.pp, v.l, v.vvvv = p[1]&3, p[1]>>2&1, ^p[1]>>3&15
		return EncVex0F, true
	}
	v.regHigh, v.indexHigh, v.rmHigh = ^p[1]>>4&8, ^p[1]>>3&8, ^p[1]>>2&8
	v.pp, v.w, v.vvvv = p[2]&3, p[2]>>7, ^p[2]>>3&15
	if len(p) == 4 {
		return v.readEvex(p)
	}
	v.l = p[2] >> 2 & 1
	m := p[1] & 0x1F
	if p[0] == 0x8F {
		return EncXop8 + Encoding(m-8), m <= 10
	}
	return EncVex0F + Encoding(m-1), m >= 1 && m <= 3
}

// evexMaps are the encodings of EVEX.mmm.
var evexMaps = [8]Encoding{
	EncNone, EncEvex0F, EncEvex0F38, EncEvex0F3A, EncNone, EncEvex5, EncEvex6, EncNone,
}

func (v *vexFields) readEvex(p []byte) (Encoding, bool) {
	v.regHigh |= ^p[1] & 0x10
	v.vvvv |= ^p[3] << 1 & 0x10
	v.l, v.aaa = p[3]>>5&3, p[3]&7
	v.z, v.b = p[3]&0x80 != 0, p[3]&0x10 != 0
	e := evexMaps[p[1]&7]
	return e, e != EncNone && p[1]&8 == 0 && p[2]&4 != 0
}

func (v *vexFields) selector() int {
	s := int(v.pp | v.w<<2 | v.l<<3)
	if v.b {
		s |= 32
	}
	return s
}

func (d *procDecoder) vexOpcode(e Encoding, op byte, at int) error {
	if err := d.lookup(e, op, d.v.selector(), at); err != nil {
		return err
	}
	var err error
	if d.f.flags&hasModRM != 0 {
		if at, err = d.operands(at, 0); err != nil {
			return err
		}
	}
	if !d.v.allowed(d.f.flags, e.evex()) || !d.v.registersAllowed(d) {
		return ErrOperands
	}
	return d.immediate(at)
}

// allowed checks the fields that do not depend on ModRM.
func (v *vexFields) allowed(f formFlags, evex bool) bool {
	vvvv := v.vvvv
	if f&vsib != 0 {
		vvvv &= 15
	}
	switch {
	case f&usesVvvv == 0 && vvvv != 0,
		f&vvvvBelow8 != 0 && v.vvvv >= 8,
		f&regBelow8 != 0 && v.regHigh != 0,
		f&rmBelow8 != 0 && v.rmHigh != 0,
		f&regBelow16 != 0 && v.regHigh&0x10 != 0:
		return false
	}
	if !evex {
		return true
	}
	return (v.aaa == 0 || f&takesMask != 0) && (v.aaa != 0 || f&needsMask == 0) &&
		(!v.z || f&zeroing != 0 && v.aaa != 0)
}

// registersAllowed checks that operands which have to be distinct are.
func (v *vexFields) registersAllowed(d *procDecoder) bool {
	if d.f.flags&distinct == 0 {
		return true
	}
	reg := d.i.ModRM>>3&7 | v.regHigh
	switch rm := d.i.ModRM&7 | v.rmHigh; {
	case d.f.flags&vsib != 0: // EVEX: V' is the index's fifth bit
		index := d.i.SIB>>3&7 | v.indexHigh | v.vvvv&0x10
		return reg != index
	case d.i.ModRM < 0xC0 && d.i.Encoding < EncEvex0F: // VEX: gathers
		index := d.i.SIB>>3&7 | v.indexHigh
		return reg != index && reg != v.vvvv && index != v.vvvv
	case d.i.Encoding < EncEvex0F: // AMX: three tiles
		return reg != rm && reg != v.vvvv && rm != v.vvvv
	default: // EVEX: complex multiplication
		rm |= v.indexHigh << 1 // X is the fifth bit of a register operand
		return reg != v.vvvv && (d.i.ModRM < 0xC0 || reg != rm)
	}
}
