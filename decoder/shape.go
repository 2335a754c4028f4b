package decoder

// shape is an instruction's outer form as the processor parses it: enough to
// find its row among the texts. Opcodes have no meaning here.
type shape struct {
	b        []byte
	addr32   bool
	size16   bool
	hasREX   bool
	segment  byte // 64 or 65, else 0
	rex      byte // W 8, R 4, X 2, B 1, also from VEX, EVEX and XOP
	enc      Encoding
	pfx      int
	opcode   byte
	at       int // of what follows the opcode, ModRM if any
	hasModRM bool
	modrm    byte
	sib      byte
	disp     int64
	dispOff  int
	dispLen  int
	end      int // behind ModRM, SIB and displacement
}

// parseShape reports false where the bytes end before the opcode. A prefix
// counts wherever it stands; a REX, directly before the opcode only.
func parseShape(b []byte) (s shape, ok bool) {
	if len(b) > MaxInsnSize {
		b = b[:MaxInsnSize]
	}
	s.b = b
	i := s.prefixes()
	if i >= len(b) {
		return s, false
	}
	switch op := b[i]; {
	case op == 0xC5:
		return s.vex2(i)
	case op == 0xC4:
		return s.vex3(i, EncVex0F)
	case op == 0x62:
		return s.evex(i)
	case op == 0x8F && i+1 < len(b) && isXopMap(b[i+1]&0x1F):
		return s.vex3(i, EncXop8)
	case op == 0x0F:
		return s.escaped(i + 1)
	default:
		s.enc, s.opcode, s.at = EncPrimary, op, i+1
		return s, true
	}
}

// isXopMap tells XOP from pop, which has 0 to 7 there.
func isXopMap(n byte) bool { return n >= 8 && n <= 10 }

// prefixes takes legacy prefixes and REX, and returns what follows.
func (s *shape) prefixes() int {
	var size, rep bool
	var rex, lastRep byte
	i := 0
	for ; i < len(s.b); i++ {
		switch b := s.b[i]; {
		case b&0xF0 == 0x40:
			rex = b
			continue
		case b == 0x66:
			size = true
		case b == 0x67:
			s.addr32 = true
		case b == 0xF3 || b == 0xF2:
			rep, lastRep = true, b
		case b == 0x64 || b == 0x65:
			s.segment = b
		case !IsLegacyPrefix(b):
			s.rex, s.hasREX, s.size16 = rex&0x0F, rex != 0, size
			s.pfx = mandatory(size, rep, lastRep)
			return i
		}
		rex = 0
	}
	return i
}

// mandatory is the prefix that selects an instruction: F3 and F2 before 66.
func mandatory(size, rep bool, lastRep byte) int {
	switch {
	case rep && lastRep == 0xF3:
		return pfxF3
	case rep:
		return pfxF2
	case size:
		return pfx66
	}
	return pfxNone
}

func (s *shape) escaped(i int) (shape, bool) {
	if i >= len(s.b) {
		return *s, false
	}
	s.enc, s.opcode, s.at = Enc0F, s.b[i], i+1
	switch s.opcode {
	case 0x0F:
		s.enc = Enc3DNow
		return *s, true
	case 0x38:
		s.enc = Enc0F38
	case 0x3A:
		s.enc = Enc0F3A
	default:
		return *s, true
	}
	if i+1 >= len(s.b) {
		return *s, false
	}
	s.opcode, s.at = s.b[i+1], i+2
	return *s, true
}

func (s *shape) vex2(i int) (shape, bool) {
	if i+2 >= len(s.b) {
		return *s, false
	}
	v := s.b[i+1]
	s.rex = ^v >> 5 & 4
	s.enc, s.pfx, s.opcode, s.at = EncVex0F, int(v&3), s.b[i+2], i+3
	return *s, true
}

// vex3 is also XOP, whose map numbers start at 8 where VEX's start at 1.
func (s *shape) vex3(i int, first Encoding) (shape, bool) {
	if i+3 >= len(s.b) {
		return *s, false
	}
	m, v := s.b[i+1], s.b[i+2]
	n := int(m&0x1F) - 1
	if first == EncXop8 {
		n -= 7
	}
	s.enc = EncNone
	if n >= 0 && n < 3 {
		s.enc = first + Encoding(n)
	}
	s.rex = ^m>>5&7 | v>>4&8
	s.pfx, s.opcode, s.at = int(v&3), s.b[i+3], i+4
	return *s, true
}

func (s *shape) evex(i int) (shape, bool) {
	if i+4 >= len(s.b) {
		return *s, false
	}
	m, v := s.b[i+1], s.b[i+2]
	s.enc = EncNone
	if n := m & 7; n >= 1 && n <= 3 {
		s.enc = EncEvex0F + Encoding(n-1)
	}
	s.rex = ^m>>5&7 | v>>4&8
	s.pfx, s.opcode, s.at = int(v&3), s.b[i+4], i+5
	return *s, true
}

// takeModRM reads ModRM, SIB and displacement; false where they are cut off.
func (s *shape) takeModRM() bool {
	if s.at >= len(s.b) {
		return false
	}
	s.hasModRM, s.modrm = true, s.b[s.at]
	s.end = s.at + 1
	mod, base := s.modrm>>6, s.modrm&7
	if mod == 3 {
		return true
	}
	if base == 4 {
		if s.end >= len(s.b) {
			return false
		}
		s.sib = s.b[s.end]
		base = s.sib & 7
		s.end++
	}
	s.dispOff = s.end
	switch {
	case mod == 1:
		s.dispLen = 1
	case mod == 2 || base == 5:
		s.dispLen = 4
	}
	s.end += s.dispLen
	if s.end > len(s.b) {
		return false
	}
	s.disp = signedAt(s.b[s.dispOff:s.end])
	return true
}

// signedAt is a little-endian signed number of up to 8 bytes, 0 for none.
func signedAt(b []byte) int64 {
	var v uint64
	for i, c := range b {
		v |= uint64(c) << (8 * i)
	}
	shift := 64 - 8*len(b)
	return int64(v<<shift) >> shift
}
