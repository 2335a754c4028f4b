package source

import "kprobelab/internal/bounded"

// cfa is the canonical frame address at an address of the code, as a register and an
// offset, from .debug_frame or .eh_frame (DWARF 5, 6.4).
func (f *File) cfa(addr uint64) (reg int, offset int64, ok bool) {
	for _, eh := range []bool{true, false} {
		name := "debug_frame"
		if eh {
			name = "eh_frame"
		}
		fr := frames{b: f.debug[name], eh: eh, at: f.ehFrame}
		if reg, offset, ok := fr.find(addr); ok {
			return reg, offset, true
		}
	}
	return 0, 0, false
}

// frames is a section of frame descriptions.
type frames struct {
	b  []byte
	eh bool
	at uint64
}

// cie holds the fields that the descriptions of many functions share.
type cie struct {
	codeAlign uint64
	dataAlign int64
	encoding  byte
	augmented bool
	program   []byte
}

func (fr *frames) find(addr uint64) (reg int, offset int64, ok bool) {
	c := cursor{b: fr.b}
	for c.at < uint64(len(fr.b)) && !c.bad {
		length, wide := uint64(c.u32()), false
		if length == 0xffffffff {
			wide, length = true, c.u64()
		}
		if length == 0 && fr.eh {
			return 0, 0, false
		}
		body := c.at
		end := body + length
		if c.bad || end > uint64(len(fr.b)) || end < body {
			return 0, 0, false
		}
		id := c.offset(wide)
		if fr.isCIE(id, wide) {
			c.at = end
			continue
		}
		at := id
		if fr.eh {
			at = body - id
		}
		common, has := fr.cie(at)
		if !has {
			c.at = end
			continue
		}
		from := fr.pointer(&c, common.encoding)
		size := fr.pointer(&c, common.encoding&0x0f)
		if addr >= from && addr-from < size {
			if common.augmented {
				c.skip(c.uleb())
			}
			if c.bad || c.at > end {
				return 0, 0, false
			}
			return common.run(fr.b[c.at:end], addr-from)
		}
		c.at = end
	}
	return 0, 0, false
}

func (fr *frames) isCIE(id uint64, wide bool) bool {
	switch {
	case fr.eh:
		return id == 0
	case wide:
		return id == everywhere
	}
	return id == 0xffffffff
}

func (fr *frames) cie(at uint64) (*cie, bool) {
	c := cursor{b: fr.b}
	c.skip(at)
	length, wide := uint64(c.u32()), false
	if length == 0xffffffff {
		wide, length = true, c.u64()
	}
	end := c.at + length
	if c.bad || end > uint64(len(fr.b)) || end < c.at || !fr.isCIE(c.offset(wide), wide) {
		return nil, false
	}
	version := c.u8()
	augmentation := string(c.text())
	if version >= 4 {
		c.skip(2)
	}
	out := &cie{codeAlign: c.uleb(), dataAlign: c.sleb()}
	if version == 1 {
		c.u8()
	} else {
		c.uleb()
	}
	if len(augmentation) > 0 && augmentation[0] == 'z' {
		out.augmented = true
		size := c.uleb()
		after := c.at + size
		for _, a := range augmentation[1:] {
			switch a {
			case 'R':
				out.encoding = c.u8()
			case 'L':
				c.u8()
			case 'P':
				fr.pointer(&c, c.u8())
			}
		}
		c.at = min(after, end)
	}
	if c.bad || c.at > end {
		return nil, false
	}
	out.program = fr.b[c.at:end]
	return out, true
}

// pointer reads an address in one of .eh_frame's encodings; 0 is a plain one.
func (fr *frames) pointer(c *cursor, encoding byte) uint64 {
	here := fr.at + c.at
	var v uint64
	switch encoding & 0x0f {
	case 0x00, 0x04, 0x0c:
		v = c.u64()
	case 0x01:
		v = c.uleb()
	case 0x02:
		v = uint64(c.u16())
	case 0x03:
		v = uint64(c.u32())
	case 0x09:
		v = uint64(c.sleb())
	case 0x0a:
		v = uint64(int64(int16(c.u16())))
	case 0x0b:
		v = uint64(int64(int32(c.u32())))
	}
	if encoding&0x70 == 0x10 {
		v += here
	}
	return v
}

// rule is the frame address's.
type rule struct {
	reg    int
	offset int64
	ok     bool
}

// run follows the program of a function up to the row of an address.
func (c *cie) run(program []byte, upTo uint64) (int, int64, bool) {
	var r rule
	var kept []rule
	var at uint64
	for _, part := range [][]byte{c.program, program} {
		b := cursor{b: part}
		for b.at < uint64(len(part)) && !b.bad {
			code := b.u8()
			low := uint64(code & 0x3f)
			switch {
			case code>>6 == 1:
				at += low * c.codeAlign
			case code>>6 == 2:
				b.uleb()
			case code>>6 == 3:
			default:
				if !c.step(code, &b, &r, &kept, &at) {
					return 0, 0, false
				}
			}
			if at > upTo {
				return r.reg, r.offset, r.ok
			}
		}
	}
	return r.reg, r.offset, r.ok
}

// step executes one instruction whose opcode has no operand in its own byte; false if it is unsupported.
func (c *cie) step(code byte, b *cursor, r *rule, kept *[]rule, at *uint64) bool {
	switch code {
	case 0x00: // nop
	case 0x01: // set_loc
		return false
	case 0x02:
		*at += uint64(b.u8()) * c.codeAlign
	case 0x03:
		*at += uint64(b.u16()) * c.codeAlign
	case 0x04:
		*at += uint64(b.u32()) * c.codeAlign
	case 0x05, 0x09, 0x14: // offset_extended, register, val_offset
		b.uleb()
		b.uleb()
	case 0x06, 0x07, 0x08, 0x2e: // restore_extended, undefined, same_value, GNU_args_size
		b.uleb()
	case 0x0a:
		if *kept = append(*kept, *r); len(*kept) > bounded.FrameStates {
			return false
		}
	case 0x0b:
		if n := len(*kept); n > 0 {
			*r, *kept = (*kept)[n-1], (*kept)[:n-1]
		}
	case 0x0c: // def_cfa
		*r = rule{int(b.uleb()), int64(b.uleb()), true}
	case 0x0d:
		r.reg = int(b.uleb())
	case 0x0e:
		r.offset = int64(b.uleb())
	case 0x0f: // def_cfa_expression
		b.skip(b.uleb())
		r.ok = false
	case 0x10, 0x16: // expression, val_expression
		b.uleb()
		b.skip(b.uleb())
	case 0x11, 0x15: // offset_extended_sf, val_offset_sf
		b.uleb()
		b.sleb()
	case 0x12:
		*r = rule{int(b.uleb()), b.sleb() * c.dataAlign, true}
	case 0x13:
		r.offset = b.sleb() * c.dataAlign
	default:
		return false
	}
	return true
}
