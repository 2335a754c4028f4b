package decoder

// vexFields are the fields of VEX, EVEX and XOP other than the opcode's map. The prefixes store
// some bits of register numbers inverted; here they are not.
type vexFields struct {
	pp, l, w byte
	// reg, rm and index bits 3 and 4 of the register numbers.
	regHigh, rmHigh, indexHigh byte
	vvvv                       byte // with EVEX 5 bits
	aaa                        byte
	z, b                       bool
	// index4 is EVEX.X4, base4 EVEX.B4: bit 4 of an index and of a base or general
	// register, which APX has.
	index4, base4 bool
	// length is L'L of map 4, which has to be 0.
	length byte
}

// vexed decodes an instruction that begins with VEX, EVEX or XOP. SDM Vol. 2, 2.3.2 and 2.7.3: 66,
// F3, F2, LOCK or REX before them are #UD.
func (d *procDecoder) vexed(at int) error {
	if at > 0 || d.b[at] == 0x62 && apxBits(d.b) { // x86asm refuses every prefix there, and APX
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

// read decodes the prefix; false for a map that does not exist, or for reserved bits with the wrong
// value.
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
	e := vexMaps[m&7]
	return e, e != EncNone && m < 8
}

// vexMaps are the encodings of VEX.mmmmm.
var vexMaps = [8]Encoding{
	EncNone, EncVex0F, EncVex0F38, EncVex0F3A, EncNone, EncVex5, EncNone, EncVex7,
}

// evexMaps are the encodings of EVEX.mmm.
var evexMaps = [8]Encoding{
	EncNone, EncEvex0F, EncEvex0F38, EncEvex0F3A, EncEvex4, EncEvex5, EncEvex6, EncEvex7,
}

func (v *vexFields) readEvex(p []byte) (Encoding, bool) {
	v.regHigh |= ^p[1] & 0x10
	v.vvvv |= ^p[3] << 1 & 0x10
	v.l, v.aaa = p[3]>>5&3, p[3]&7
	v.z, v.b = p[3]&0x80 != 0, p[3]&0x10 != 0
	v.base4, v.index4 = p[1]&8 != 0, p[2]&4 == 0
	e := evexMaps[p[1]&7]
	if e == EncEvex4 { // no L'L: NF takes its place in selectors
		v.length, v.l = v.l, v.aaa>>2
	}
	return e, e != EncNone
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
	if !d.v.allowed(d.f.flags, e) || !d.v.registersAllowed(d) {
		return ErrOperands
	}
	if e == EncEvex4 {
		d.size, d.w = d.v.pp&1, d.v.w<<3
	}
	return d.immediate(at)
}

// allowed checks the fields that do not depend on ModRM.
func (v *vexFields) allowed(f formFlags, e Encoding) bool {
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
	if !e.evex() {
		return true
	}
	switch {
	case e == EncEvex4:
		return v.length == 0 && !v.z && (v.aaa&3 == 0 || f&conditional != 0)
	case f&takesNF != 0:
		return v.aaa&3 == 0 && !v.z
	}
	return (v.aaa == 0 || f&takesMask != 0) && (v.aaa != 0 || f&needsMask == 0) &&
		(!v.z || f&zeroing != 0 && v.aaa != 0)
}

// registersAllowed reports whether the operands that must be distinct are distinct.
func (v *vexFields) registersAllowed(d *procDecoder) bool {
	if v.index4 && (d.i.ModRM >= 0xC0 || d.f.flags&vsib != 0) {
		return false // there is no index, or V' is its fifth bit
	}
	if d.i.VexLen == 4 && d.f.flags&rmBelow8 != 0 && d.i.ModRM >= 0xC0 && (v.base4 || v.indexHigh != 0) {
		return false
	}
	if d.f.flags&(distinct|notRSP) == 0 {
		return true
	}
	reg := d.i.ModRM>>3&7 | v.regHigh
	switch rm := d.i.ModRM&7 | v.rmHigh; {
	case d.i.Encoding == EncEvex4: // push2, pop2
		if v.base4 {
			rm |= 0x10
		}
		const rsp = 4
		return rm != rsp && v.vvvv != rsp && (rm != v.vvvv || d.f.flags&distinct == 0)
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
