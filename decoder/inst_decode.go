package decoder

// procDecoder is one decode in the processor's view under way.
type procDecoder struct {
	b    []byte
	i    Inst
	size byte // 1 with 66
	rep  byte // 2 for F3, 4 for F2, the last one counts
	lock bool
	a32  bool
	w    byte // 8 with REX.W
	f    *form
	v    vexFields
	// overrides: only the rows that are overrides count.
	overrides bool
	p         Processor
}

// prefixKind tells prefixes from opcodes.
var prefixKind = func() (t [256]byte) {
	for _, b := range []byte{0x2E, 0x36, 0x3E, 0x26, 0x64, 0x65} {
		t[b] = prefixSegment
	}
	for b := 0x40; b <= 0x4F; b++ {
		t[b] = prefixREX
	}
	t[0x66], t[0x67], t[0xF0], t[0xF2], t[0xF3] = prefixSize, prefixAddress, prefixLock, prefixRepne, prefixRep
	return t
}()

const (
	prefixSegment = iota + 1
	prefixREX
	prefixSize
	prefixAddress
	prefixLock
	prefixRepne
	prefixRep
)

// short is the error for bytes that end too early.
func (d *procDecoder) short() error {
	if len(d.b) >= MaxInsnSize {
		return ErrTooLong
	}
	return ErrTruncated
}

func (d *procDecoder) decode() error {
	b := d.b
	at := d.prefixes()
	if at >= len(b) {
		return d.short()
	}
	d.i.PrefixLen, d.i.OpcodeOff = uint8(at), uint8(at)
	op := b[at]
	switch {
	case op == 0x0F:
		return d.escaped(at)
	case op == 0xC4, op == 0xC5, op == 0x62:
		return d.vexed(at)
	case op == rex2Prefix:
		return d.rex2(at)
	case op == 0x8F && at+1 < len(b) && b[at+1]&0x1F >= 8: // below 8 it is pop
		return d.vexed(at)
	}
	d.i.OpcodeLen = 1
	return d.legacy(EncPrimary, op, at+1)
}

// prefixes reads legacy prefixes and REX, and returns the offset after them. A legacy prefix counts
// at every place, a REX only directly before the opcode.
func (d *procDecoder) prefixes() int {
	b := d.b
	at := 0
	for ; at < len(b); at++ {
		c := b[at]
		kind := prefixKind[c]
		if kind == 0 {
			break
		}
		if d.i.REX != 0 { // x86asm refuses a REX that counts for nothing
			d.i.REX, d.overrides = 0, false
		}
		if kind == prefixREX {
			d.i.REX = c
			continue
		}
		switch kind {
		case prefixSize:
			d.size = 1
		case prefixAddress:
			d.a32 = true
		case prefixLock:
			d.lock = true
		case prefixRepne:
			d.rep = 4
		case prefixRep:
			d.rep = 2
		}
	}
	d.w = d.i.REX & 8
	return at
}

func (d *procDecoder) escaped(at int) error {
	b := d.b
	if at+1 >= len(b) {
		return d.short()
	}
	op, e := b[at+1], Enc0F
	switch op {
	case 0x0F:
		return d.threeDNow(at)
	case 0x38:
		e = Enc0F38
	case 0x3A:
		e = Enc0F3A
	default:
		d.i.OpcodeLen = 2
		return d.legacy(e, op, at+2)
	}
	if at+2 >= len(b) {
		return d.short()
	}
	d.i.OpcodeLen = 3
	return d.legacy(e, b[at+2], at+3)
}

// lookup finds the form of an opcode. The error is ErrUnknown if there is none. at is the offset of
// ModRM, if there is one.
func (d *procDecoder) lookup(e Encoding, op byte, selector int, at int) error {
	t := opcodesOf(e)
	if d.overrides {
		t = overridesOf(e)
	}
	d.i.Encoding, d.i.Opcode = e, op
	leaf := t.ops[op]
	if leaf&bySelector != 0 {
		leaf = uint32(t.leaves[int(leaf&^bySelector)+selector])
	}
	if d.p.NoMPX && e == Enc0F && op&^1 == 0x1A {
		leaf = uint32(t.withoutMPX[op])
	}
	if leaf&byModRM != 0 {
		if at >= len(d.b) {
			return d.short()
		}
		leaf = uint32(t.modrm[leaf&^byModRM][d.b[at]])
	}
	if leaf == 0 {
		return ErrUnknown
	}
	d.f = &t.forms[leaf]
	d.i.row, d.i.Class = d.f.row, d.f.class
	return nil
}

func (d *procDecoder) legacy(e Encoding, op byte, at int) error {
	if err := d.lookup(e, op, int(d.size|d.rep|d.w), at); err != nil {
		return err
	}
	flags := d.f.flags
	if d.p.AMD && flags&(intelOnly|bareOnAMD|cr8) != 0 {
		if err := d.amd(&flags); err != nil {
			return err
		}
	}
	if d.lock && flags&lockable == 0 {
		return ErrPrefix
	}
	if flags&hasModRM != 0 {
		var err error
		if at, err = d.operands(at, flags); err != nil {
			return err
		}
		if d.i.REX&5 != 0 && !d.rexAllowed(flags) {
			return ErrOperands
		}
	}
	return d.immediate(at)
}

// threeDNow decodes 3DNow!, whose opcode follows the operands.
func (d *procDecoder) threeDNow(at int) error {
	end, err := d.operands(at+2, 0)
	if err != nil {
		return err
	}
	d.i.OpcodeLen = 2
	if end >= len(d.b) {
		return d.short()
	}
	if err := d.lookup(Enc3DNow, d.b[end], 0, end); err != nil {
		return err
	}
	if d.lock {
		return ErrPrefix
	}
	d.i.Length = end + 1
	return nil
}

// operands takes ModRM, SIB and displacement, and returns where they end.
func (d *procDecoder) operands(at int, flags formFlags) (int, error) {
	b := d.b
	if at >= len(b) {
		return 0, d.short()
	}
	m := b[at]
	d.i.HasModRM, d.i.ModRM, d.i.ModRMOff = true, m, uint8(at)
	at++
	if m >= 0xC0 || flags&registerOnly != 0 {
		return at, nil
	}
	base := m & 7
	if base == 4 {
		if at >= len(b) {
			return 0, d.short()
		}
		d.i.HasSIB, d.i.SIB = true, b[at]
		base = b[at] & 7
		at++
	}
	switch {
	case m >= 0x80, m < 0x40 && base == 5:
		if at+4 > len(b) {
			return 0, d.short()
		}
		d.i.Disp = int32(uint32(b[at]) | uint32(b[at+1])<<8 | uint32(b[at+2])<<16 | uint32(b[at+3])<<24)
		d.i.DispOff, d.i.DispLen = uint8(at), 4
		d.i.RIPRelative = m&0xC7 == 5
		return at + 4, nil
	case m >= 0x40:
		if at >= len(b) {
			return 0, d.short()
		}
		d.i.Disp = int32(int8(b[at]))
		d.i.DispOff, d.i.DispLen = uint8(at), 1
		return at + 1, nil
	}
	return at, nil
}

// immediate takes the immediate, which stands last. A branch has its target
// there.
func (d *procDecoder) immediate(at int) error {
	kind := d.f.imm
	if kind == immNone {
		d.i.Length = at
		return nil
	}
	n := d.immLen(kind)
	if d.p.AMD && d.size > d.w && kind >= immRel8 && kind <= immRel32 {
		d.i.Near16 = true
		n = min(n, 2)
	}
	if at+n > len(d.b) {
		return d.short()
	}
	d.i.ImmOff, d.i.ImmLen = uint8(at), uint8(n)
	d.i.Length = at + n
	if kind >= immRel8 {
		d.i.HasTarget, d.i.Rel = kind != immAbs8, signedAt(d.b[at:at+n])
	}
	return nil
}

// immLens are the lengths that do not depend on prefixes.
var immLens = [...]uint8{
	imm1: 1, imm2: 2, imm4: 4, imm8: 8, imm2And1: 3, imm1And1: 2, immRel8: 1, immRel32: 4, immRelZ: 0, immAbs8: 8,
}

func (d *procDecoder) immLen(kind immKind) int {
	switch kind {
	case immZ, immRelZ:
		if d.size != 0 && d.w == 0 {
			return 2
		}
		return 4
	case immV:
		return int(8 >> (1 - d.w>>3) >> (d.size &^ (d.w >> 3)))
	case immMoffs:
		if d.a32 {
			return 4
		}
		return 8
	}
	return int(immLens[kind])
}
