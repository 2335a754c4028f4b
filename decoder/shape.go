package decoder

// shape is an instruction's outer form: what finds its row among the texts and
// its operands.
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
	hasModRM bool
	modrm    byte
	sib      byte
	disp     int64
	dispLen  int
	end      int // where ModRM, SIB and displacement end
}

func (i *Inst) shape() shape {
	s := shape{
		b: i.code[:i.Length], hasREX: i.REX != 0, rex: i.REX & 0x0F, enc: i.Encoding, opcode: i.Opcode,
		hasModRM: i.HasModRM, modrm: i.ModRM, sib: i.SIB, disp: int64(i.Disp), dispLen: int(i.DispLen),
		end: int(i.OpcodeOff + i.OpcodeLen),
	}
	if i.HasModRM {
		s.end = int(i.ModRMOff) + 1 + s.dispLen
	}
	if i.HasSIB {
		s.end++
	}
	s.prefixes(s.b[:i.PrefixLen])
	if v := s.b[i.PrefixLen:][:i.VexLen]; len(v) == 2 {
		s.rex, s.pfx = ^v[1]>>5&4, int(v[1]&3)
	} else if len(v) > 2 {
		s.rex, s.pfx = ^v[1]>>5&7|v[2]>>4&8, int(v[2]&3)
	}
	return s
}

// prefixes takes legacy prefixes. F3 and F2, of which the last one counts,
// select an instruction before 66 does.
func (s *shape) prefixes(b []byte) {
	rep := pfxNone
	for _, c := range b {
		switch c {
		case 0x66:
			s.size16 = true
		case 0x67:
			s.addr32 = true
		case 0xF3:
			rep = pfxF3
		case 0xF2:
			rep = pfxF2
		case 0x64, 0x65:
			s.segment = c
		}
	}
	s.pfx = rep
	if rep == pfxNone && s.size16 {
		s.pfx = pfx66
	}
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
