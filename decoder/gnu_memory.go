package decoder

// Memory operands in GNU syntax: %seg:disp(base,index,scale){1toN}.

var segmentNames = [2]string{"%fs:", "%gs:"}

// segmentName writes the segment that has an address of its own.
func (g *gnuText) segmentName() {
	if g.segment != 0 {
		g.out = append(g.out, segmentNames[g.segment&1]...)
	}
}

// stringMemory writes the memory operand of a string instruction.
func (g *gnuText) stringMemory(head, register string) {
	g.out = append(g.out, head...)
	size := byte('r')
	if g.addr32 {
		size = 'e'
	}
	g.out = append(append(g.out, size), register...)
}

func (g *gnuText) memory(o *operand) {
	i := g.i
	g.segmentName()
	disp := int64(i.Disp)
	if i.DispLen == 1 && o.scale != 0 {
		disp *= int64(g.scaleOf(o))
	}
	address := byte('q')
	if g.addr32 {
		address = 'd'
	}
	base, index, scale := "", "", byte('1')
	switch mod, rm := i.ModRM>>6, i.ModRM&7; {
	case i.RIPRelative && !i.HasSIB:
		base = "%rip"
		if g.addr32 {
			base = "%eip"
		}
	case rm != 4:
		base = registerClasses[address][rm|g.base]
	default:
		if i.SIB&7 != 5 || mod != 0 {
			base = registerClasses[address][i.SIB&7|g.base]
		}
		index, scale = g.indexOf(o, address, base != ""), '0'+1<<(i.SIB>>6)
	}
	if base == "" && index == "" {
		v := uint64(disp)
		if g.addr32 {
			v &= 1<<32 - 1
		}
		g.hex(v)
		g.broadcast(o)
		return
	}
	if i.DispLen != 0 {
		if base == "" && g.addr32 { // an address, not a distance
			g.hex(uint64(uint32(disp)))
		} else {
			g.signed(disp)
		}
	}
	g.out = append(append(g.out, '('), base...)
	if index != "" {
		g.out = append(append(g.out, ','), index...)
		g.out = append(g.out, ',', scale)
	}
	g.out = append(g.out, ')')
	g.broadcast(o)
}

// indexOf returns the index's name. A SIB without an index has no name if no shorter encoding has
// the same meaning, else the assembler's placeholder.
func (g *gnuText) indexOf(o *operand, address byte, base bool) string {
	sib := g.i.SIB
	n := sib>>3&7 | g.index
	switch {
	case o.index != 0:
		kind := o.index
		if kind == 'V' || kind == 'h' || kind == 'f' {
			kind = g.vector(kind)
		}
		return registerClasses[kind][n|g.vvvv&0x10*g.vsibHigh()]
	case n != 4:
		return registerClasses[address][n]
	case sib>>6 == 0 && (sib&7 == 4 && base || !base && !g.addr32):
		return ""
	case g.addr32:
		return "%eiz"
	}
	return "%riz"
}

// vsibHigh is 1 where EVEX.V' is the index's fifth bit.
func (g *gnuText) vsibHigh() byte {
	if g.i.VexLen == 4 {
		return 1
	}
	return 0
}

// scaleOf returns the unit in bytes of a short EVEX displacement.
func (g *gnuText) scaleOf(o *operand) int {
	if g.b && o.element != 0 {
		return int(o.element)
	}
	return g.size(o.scale)
}

// size is the bytes of memory that a kind names.
func (g *gnuText) size(kind byte) int {
	vector := 16 << g.l
	switch kind {
	case 'V':
		return vector
	case 'h':
		return vector / 2
	case 'f':
		return vector / 4
	case 'e':
		return vector / 8
	case 'y':
		if g.w {
			return 8
		}
		return 4
	case 'u':
		if g.l == 0 {
			return 8
		}
		return vector
	}
	return int(kind)
}

// broadcast prints how many times EVEX.b repeats an element of memory.
func (g *gnuText) broadcast(o *operand) {
	if !g.b || o.element == 0 {
		return
	}
	names := [...]string{2: "{1to2}", 4: "{1to4}", 8: "{1to8}", 16: "{1to16}", 32: "{1to32}"}
	if n := g.size(o.scale) / int(o.element); n < len(names) {
		g.out = append(g.out, names[n]...)
	}
}
