package decoder

import "kprobelab/profile"

// Kernel is an instruction as the kernel's own decoder sees it (struct insn, arch/x86/lib/insn.c;
// docs/spec 11). Offsets count from the first byte; an absent field has the offset that the field
// would have.
//
// With VEX or EVEX the opcode is the one byte after the prefix and OpcodeLen is
// 1. kprobes takes that byte for a legacy opcode (docs/spec 2.7, "Quirk").
type Kernel struct {
	// Length of the whole instruction, 1 to 15 bytes.
	Length int

	// EmulateLen is the length of a Xen or KVM forced-emulation prefix, 5 or 0.
	EmulateLen int
	// PrefixLen counts the legacy prefix bytes, repeats too.
	PrefixLen int
	// Prefixes are the distinct legacy prefixes, up to 4, in order of first
	// appearance; the rest is zero.
	Prefixes [4]byte
	// LastPrefix is the legacy prefix nearest to the opcode, 0 for none.
	LastPrefix byte
	// REX is the REX prefix (40-4F), or D5 where REX2 is one; 0 for none.
	REX byte
	// REX2 is the second byte of a REX2 prefix; valid where REX is D5.
	REX2 byte
	// Vex is the VEX, EVEX or XOP prefix and VexLen its length: 0, 2, 3 or 4.
	Vex    [4]byte
	VexLen int

	// Opcode is the opcode with its 0F, 0F 38 or 0F 3A escapes.
	Opcode    [3]byte
	OpcodeOff int
	OpcodeLen int

	// ModRM is valid where HasModRM, SIB where HasSIB.
	HasModRM bool
	ModRM    byte
	ModRMOff int
	HasSIB   bool
	SIB      byte

	// Disp is the displacement, sign-extended; DispLen is 0, 1 or 4.
	DispOff int
	DispLen int
	Disp    int32

	// Imm is the first immediate, sign-extended, an absolute address (moffs)
	// or a far pointer's offset. ImmLen is 0, 1, 2, 4 or 8.
	ImmOff int
	ImmLen int
	Imm    int64
	// Imm2 follows the first one: ENTER's level or a far pointer's selector.
	// Imm2Len is 0, 1 or 2.
	Imm2    int16
	Imm2Len int

	// OpSize is the operand size, 2, 4 or 8 bytes; AddrSize 4 or 8.
	OpSize   int
	AddrSize int
}

// defaultDecoder is the decoder of 6.1.
var defaultDecoder = profile.Decoder{EVEX: true, EmulatePrefix: true, Errors: true, AMX: true, PushIz: true}

// DecodeKernel decodes the instruction at the start of b as the kernel's decoder does in 64-bit
// mode; it reads no more than 15 bytes. d selects the release; nil is 6.1's. The error is
// ErrTruncated or ErrBadVEX; a decoder without errors (to 5.12) leaves fields zero instead, and
// Length is the number of consumed bytes.
//
// It does not allocate.
func DecodeKernel(b []byte, d *profile.Decoder) (Kernel, error) {
	if d == nil {
		d = &defaultDecoder
	}
	if len(b) > MaxInsnSize {
		b = b[:MaxInsnSize]
	}
	s := kernelDecoder{b: b, d: d, t: tables61}
	switch {
	case d.INV64 || d.XOP:
		s.t = tables618
	case d.REX2:
		s.t = tables612
	case !d.AMX:
		s.t = tables510
	}
	s.k.OpSize, s.k.AddrSize = 4, 8
	err := s.decode()
	if err != nil && !d.Errors {
		err = nil
	}
	s.k.Length = s.pos
	return s.k, err
}

// kernelDecoder is one decode under way.
type kernelDecoder struct {
	b    []byte
	pos  int
	d    *profile.Decoder
	t    *opcodeTables
	attr attr
	k    Kernel
}

// decode follows the steps of docs/spec 11.2, in their order.
func (s *kernelDecoder) decode() error {
	s.emulatePrefix()
	if err := s.legacyPrefixes(); err != nil {
		return err
	}
	if err := s.rex(); err != nil {
		return err
	}
	if err := s.vex(); err != nil {
		return err
	}
	if err := s.opcode(); err != nil {
		return err
	}
	if err := s.modRM(); err != nil {
		return err
	}
	if s.attr&attrForce64 != 0 {
		s.k.OpSize = 8
	}
	if err := s.displacement(); err != nil {
		return err
	}
	return s.immediates()
}

// next takes one byte.
func (s *kernelDecoder) next() (byte, error) {
	if s.pos >= len(s.b) {
		return 0, ErrTruncated
	}
	s.pos++
	return s.b[s.pos-1], nil
}

// peek looks at the byte n places ahead.
func (s *kernelDecoder) peek(n int) (byte, error) {
	if s.pos+n >= len(s.b) {
		return 0, ErrTruncated
	}
	return s.b[s.pos+n], nil
}

// signed takes n bytes as a little-endian signed number.
func (s *kernelDecoder) signed(n int) (int64, error) {
	if s.pos+n > len(s.b) {
		return 0, ErrTruncated
	}
	var v uint64
	for i := range n {
		v |= uint64(s.b[s.pos+i]) << (8 * i)
	}
	s.pos += n
	shift := 64 - 8*n
	return int64(v<<shift) >> shift, nil
}

func (s *kernelDecoder) opcode() error {
	s.k.OpcodeOff = s.pos
	op, err := s.next()
	if err != nil {
		return err
	}
	s.k.Opcode[0], s.k.OpcodeLen = op, 1
	if s.k.VexLen != 0 {
		return s.vexOpcode(op)
	}
	m := mapPrimary
	switch {
	case s.k.REX == 0xD5:
		m = int(s.k.REX2 >> 7)
	case op == 0x0F:
		if m, err = s.escape(); err != nil {
			return err
		}
		op = s.k.Opcode[s.k.OpcodeLen-1]
	}
	s.attr = s.t.lookup(m, s.k.mandatoryPrefix(), op)
	if s.d.INV64 && s.attr&attrInv64 != 0 && s.k.REX != 0xD5 {
		s.attr = 0
	}
	if m == mapPrimary && op == pushImm && !s.d.PushIz {
		s.attr = s.attr&^attrImmV32 | attrImmDword
	}
	// REX2 skips the test for VEX (docs/spec 11.2).
	if s.attr&(attrVexOnly|attrEvexOnly) != 0 && s.k.REX != 0xD5 {
		return s.badVEX()
	}
	return nil
}

// pushImm is push of an immediate.
const pushImm = 0x68

// escape reads the bytes after 0F, and returns the map that they select.
func (s *kernelDecoder) escape() (int, error) {
	op, err := s.next()
	if err != nil {
		return 0, err
	}
	s.k.Opcode[1], s.k.OpcodeLen = op, 2
	m := map0F
	switch op {
	case 0x38:
		m = map0F38
	case 0x3A:
		m = map0F3A
	default:
		return m, nil
	}
	if op, err = s.next(); err != nil {
		return 0, err
	}
	s.k.Opcode[2], s.k.OpcodeLen = op, 3
	return m, nil
}

// lookup is the attributes of an opcode without VEX.
func (t *opcodeTables) lookup(m, pfx int, op byte) attr {
	a := t.maps[m][pfxNone][op]
	if a&attrVariant != 0 && pfx != pfxNone {
		return t.maps[m][pfx][op]
	}
	return a
}

func (s *kernelDecoder) vexOpcode(op byte) error {
	m, pp := s.k.vexMap()
	if s.k.VexLen == 4 && !s.d.AMX {
		m &= 3 // the field had two bits
	}
	xop := s.k.Vex[0] == xopPrefix
	if m != mapPrimary && m < numMaps && xop == (m >= mapXop8) {
		s.attr = s.t.maps[m][pfxNone][op]
		if pp != 0 && s.attr.group() == 0 && !xop {
			s.attr = s.t.maps[m][pp][op]
		}
	}
	evexMissing := s.attr&attrEvexOnly != 0 && s.k.VexLen != 4
	accepted := s.attr&attrVexOK != 0 || s.attr.group() != 0
	if evexMissing || !accepted {
		return s.badVEX()
	}
	if s.attr&attrEvexScalable != 0 && pp == pfx66 && s.k.Vex[2]&0x80 == 0 {
		s.k.OpSize = 2
	}
	return nil
}

// badVEX drops the attributes, which is all that decoders without errors do.
func (s *kernelDecoder) badVEX() error {
	s.attr = 0
	if !s.d.Errors {
		return nil
	}
	return ErrBadVEX
}

func (s *kernelDecoder) modRM() error {
	s.k.ModRMOff = s.pos
	if s.attr&attrModRM == 0 {
		return nil
	}
	b, err := s.next()
	if err != nil {
		return err
	}
	s.k.HasModRM, s.k.ModRM = true, b
	if g := s.attr.group(); g != 0 {
		s.attr = s.t.groupAttr(g, s.k.mandatoryPrefix(), b>>3&7, s.attr)
		if s.k.VexLen != 0 && s.attr&attrVexOK == 0 {
			return s.badVEX()
		}
	}
	return nil
}

// groupAttr adds the group's attributes for ModRM.reg to the parent's. A group without any table
// adds nothing.
func (t *opcodeTables) groupAttr(g, pfx int, reg byte, parent attr) attr {
	a := t.groups[g][pfxNone][reg]
	if a&attrVariant != 0 && pfx != pfxNone {
		a = t.groups[g][pfx][reg]
	}
	return parent&(1<<attrGroupPos-1) | a
}

// displacement takes SIB and displacement, as ModRM says. The processor's
// compressed displacement of EVEX has the same length.
func (s *kernelDecoder) displacement() error {
	s.k.DispOff = s.pos
	if !s.k.HasModRM || s.k.ModRM>>6 == 3 {
		return nil
	}
	base := s.k.ModRM & 7
	if base == 4 {
		b, err := s.next()
		if err != nil {
			return err
		}
		s.k.HasSIB, s.k.SIB = true, b
		base = b & 7
	}
	s.k.DispOff = s.pos
	switch mod := s.k.ModRM >> 6; {
	case mod == 1:
		s.k.DispLen = 1
	case mod == 2 || base == 5:
		s.k.DispLen = 4
	}
	v, err := s.signed(s.k.DispLen)
	if err != nil {
		s.k.DispLen = 0
	}
	s.k.Disp = int32(v)
	return err
}

func (s *kernelDecoder) immediates() (err error) {
	s.k.ImmOff = s.pos
	first, second := s.immediateSizes()
	if first < 0 {
		return ErrTruncated
	}
	if first == 0 {
		return nil
	}
	if s.k.Imm, err = s.signed(first); err != nil {
		return err
	}
	s.k.ImmLen = first
	if second == 0 {
		return nil
	}
	v, err := s.signed(second)
	if err == nil {
		s.k.Imm2, s.k.Imm2Len = int16(v), second
	}
	return err
}

// immediateSizes are the sizes in bytes; a first one of -1 is the impossible
// far pointer with operand size 8.
func (s *kernelDecoder) immediateSizes() (first, second int) {
	a, op := s.attr, s.k.OpSize
	switch {
	case a&attrMoffs != 0:
		return s.k.AddrSize, 0
	case a&attrImmByte != 0:
		first = 1
	case a&attrImmWord != 0:
		first = 2
	case a&attrImmDword != 0:
		first = 4
	case a&attrImmV32 != 0:
		first = min(op, 4)
	case a&attrImmV != 0:
		first = op
	case a&attrImmPtr != 0 && op == 8:
		return -1, 0
	case a&attrImmPtr != 0:
		return op, 2
	}
	if a&attrImm2Byte != 0 {
		second = 1
	}
	return first, second
}
