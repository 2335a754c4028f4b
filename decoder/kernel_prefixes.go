package decoder

// What the kernel's decoder takes before the opcode (docs/spec 11.2, steps 1 to 4).

// emulatePrefix takes "ud2; 'xen'" or "ud2; 'kvm'" (asm/emulate_prefix.h).
func (s *kernelDecoder) emulatePrefix() {
	if !s.d.EmulatePrefix || len(s.b) < 5 {
		return
	}
	switch string(s.b[:5]) {
	case "\x0f\x0bxen", "\x0f\x0bkvm":
		s.k.EmulateLen = 5
		s.pos = 5
	}
}

// legacyPrefixes takes prefixes until something else comes, or a fifth
// distinct one, which is then taken for the opcode.
func (s *kernelDecoder) legacyPrefixes() error {
	distinct := 0
	for {
		b, err := s.peek(0)
		if err != nil {
			return err
		}
		if !IsLegacyPrefix(b) {
			return nil
		}
		if !s.k.HasPrefix(b) {
			if distinct == len(s.k.Prefixes) {
				return nil
			}
			s.k.Prefixes[distinct] = b
			distinct++
			s.toggleSize(b)
		}
		s.k.LastPrefix = b
		s.k.PrefixLen++
		s.pos++
	}
}

func (s *kernelDecoder) toggleSize(prefix byte) {
	switch prefix {
	case 0x66:
		s.k.OpSize = 2
	case 0x67:
		s.k.AddrSize = 4
	}
}

// IsLegacyPrefix reports whether the byte is one of the eleven legacy prefixes.
func IsLegacyPrefix(b byte) bool {
	switch b {
	case 0x66, 0xF3, 0xF2, 0xF0, 0x2E, 0x3E, 0x26, 0x64, 0x65, 0x36, 0x67:
		return true
	}
	return false
}

// rex takes at most one REX, or one REX2 where that exists.
func (s *kernelDecoder) rex() error {
	b, err := s.peek(0)
	switch {
	case err != nil:
		return err
	case b&0xF0 == 0x40:
		s.k.REX = b
		s.pos++
	case b == 0xD5 && s.d.REX2:
		if b, err = s.peek(1); err != nil {
			return err
		}
		s.k.REX, s.k.REX2 = 0xD5, b
		s.pos += 2
	default:
		return nil
	}
	if b&0x08 != 0 {
		s.k.OpSize = 8
	}
	return nil
}

// vex reads a VEX, EVEX or XOP prefix. In 64-bit mode C4, C5 and 62 have no other meaning, whatever
// is before them. The decoder of 6.18 does not look for them after a REX.
func (s *kernelDecoder) vex() error {
	if s.k.REX == 0xD5 || s.d.XOP && s.k.REX != 0 {
		return nil
	}
	b, err := s.peek(0)
	if err != nil {
		return err
	}
	n := s.vexLen(b)
	if n == 0 && b == xopPrefix && s.d.XOP {
		if n, err = s.xopLen(); err != nil {
			return err
		}
	}
	if n == 0 {
		return nil
	}
	if _, err := s.peek(n - 1); err != nil {
		return err
	}
	copy(s.k.Vex[:], s.b[s.pos:s.pos+n])
	s.k.VexLen = n
	// W widens the operand. In EVEX the kernel reads it from the last byte, not from the third as
	// the processor does.
	if n > 2 && s.k.Vex[n-1]&0x80 != 0 {
		s.k.OpSize = 8
	}
	s.pos += n
	return nil
}

func (s *kernelDecoder) vexLen(b byte) int {
	switch {
	case b == 0xC5:
		return 2
	case b == 0xC4:
		return 3
	case b == 0x62 && s.d.EVEX:
		return 4
	}
	return 0
}

// xopPrefix begins AMD's XOP instructions, and POP with a ModRM byte.
const xopPrefix = 0x8F

// xopLen is the length of an XOP prefix, 0 for POP, whose ModRM.reg is 0.
func (s *kernelDecoder) xopLen() (int, error) {
	b, err := s.peek(1)
	if err != nil || b>>3&7 == 0 {
		return 0, err
	}
	return 3, nil
}

// vexMap returns the map and the pp field of a VEX, EVEX or XOP prefix.
func (k *Kernel) vexMap() (m, pp int) {
	switch k.VexLen {
	case 2:
		return map0F, int(k.Vex[1] & 3)
	case 3:
		return int(k.Vex[1] & 0x1F), int(k.Vex[2] & 3)
	default:
		return int(k.Vex[1] & 7), int(k.Vex[2] & 3)
	}
}

// mandatoryPrefix is the number of the prefix that selects a variant.
func (k *Kernel) mandatoryPrefix() int {
	if k.VexLen != 0 {
		_, pp := k.vexMap()
		return pp
	}
	switch k.LastPrefix {
	case 0x66:
		return pfx66
	case 0xF3:
		return pfxF3
	case 0xF2:
		return pfxF2
	}
	return pfxNone
}
