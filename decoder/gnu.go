package decoder

import (
	"fmt"
	"strconv"

	"kprobelab/x86"
)

// Text of instructions in GNU syntax, from the templates of opcodes/.

// registerClasses are the names of each kind of register that no prefix changes.
var registerClasses = func() (t [128][32]string) {
	fill := func(kind byte, names []string, format string, from int) {
		for n := range t[kind] {
			switch {
			case n < len(names):
				t[kind][n] = "%" + names[n]
			case n >= from:
				t[kind][n] = "%" + fmt.Sprintf(format, n)
			}
		}
	}
	fill('q', []string{"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"}, "r%d", 8)
	fill('d', []string{"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi"}, "r%dd", 8)
	fill('w', []string{"ax", "cx", "dx", "bx", "sp", "bp", "si", "di"}, "r%dw", 8)
	fill('b', []string{"al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil"}, "r%db", 8)
	for kind, format := range map[byte]string{
		'x': "xmm%d", 'Y': "ymm%d", 'Z': "zmm%d", 'm': "mm%d", 'k': "k%d", 't': "tmm%d", 'c': "cr%d", 'D': "db%d",
		'n': "bnd%d", 'T': "st(%d)",
	} {
		fill(kind, nil, format, 0)
	}
	segments := []string{"es", "cs", "ss", "ds", "fs", "gs", "?", "?"}
	for n := range t['s'] {
		t['s'][n] = "%" + segments[n&7]
	}
	return t
}()

// lowRegisters are the classes that have eight registers, whatever a prefix says.
var lowRegisters = [128]bool{'s': true, 'm': true, 'k': true, 't': true, 'T': true, 'n': true}

// generalKinds are the kinds of general registers.
var generalKinds = func() (t [128]bool) {
	for _, kind := range "abwdqvyz8g" {
		t[kind] = true
	}
	return t
}()

// gnu8High are numbers 4 to 7 of a register of one byte, without a REX prefix.
var gnu8High = [8]string{4: "%ah", 5: "%ch", 6: "%dh", 7: "%bh"}

// gnuText is a text under construction: the instruction's fields, and the output so far.
type gnuText struct {
	out []byte
	i   *Inst
	t   *template
	at  x86.Addr

	size16, addr32, w bool
	register          bool // ModRM.rm is a register
	segment           byte // 64 or 65, else 0
	// reg, rm, index, vvvv are register numbers; general is the number of ModRM.rm if that is a
	// general register.
	reg, rm, base, index, vvvv, general byte
	l, aaa                              byte
	z, b                                bool
	// nf is true for {nf}; condition is the condition of ccmp and ctest.
	nf        bool
	condition byte
}

// Text returns the instruction at that address in GNU syntax. GNU as assembles it to the same
// bytes, or to other bytes with the same meaning (docs/decoder.md, "Text").
func (i *Inst) Text(at x86.Addr) string {
	var buf [128]byte
	return string(i.AppendText(buf[:0], at))
}

// AppendText appends Text to out, which saves a string a line.
func (i *Inst) AppendText(out []byte, at x86.Addr) []byte {
	if i.Length == 0 {
		return append(out, "(bad)"...)
	}
	g := gnuText{out: out, i: i, at: at}
	g.fields()
	g.t = g.template()
	g.prefixes()
	switch {
	case g.nf:
		g.out = append(g.out, "{nf} "...)
	case g.t.pseudo != "" && g.needsPseudo():
		g.out = append(append(g.out, g.t.pseudo...), ' ')
	}
	predicate := g.predicate()
	g.mnemonic(predicate)
	separator := byte(' ')
	first := 0
	if predicate != "" {
		first = 1 // the mnemonic has said it
	}
	for n := first; n < len(g.t.operands); n++ {
		if g.t.usesModRM && !i.HasModRM {
			break // ud0 of AMD's processors
		}
		o := &g.t.operands[n]
		if o.source == 'F' && !(g.b && g.register) {
			continue
		}
		g.out = append(g.out, separator)
		separator = ','
		g.operand(o)
	}
	if g.aaa != 0 {
		g.out = append(g.out, '{')
		g.out = append(g.out, registerClasses['k'][g.aaa]...)
		g.out = append(g.out, '}')
	}
	if g.z {
		g.out = append(g.out, "{z}"...)
	}
	return g.out
}

// fields takes the prefixes and ModRM apart.
func (g *gnuText) fields() {
	i := g.i
	for _, c := range i.legacyPrefixes() {
		switch c {
		case 0x66:
			g.size16 = true
		case 0x67:
			g.addr32 = i.opcodeRow().form.flags&wideAddress == 0
		case 0x64, 0x65: // the others count for nothing, wherever they stand
			g.segment = c
		}
	}
	rex := i.REX
	switch {
	case i.VexLen != 0:
		rex = g.vexFields(i.code[i.PrefixLen:][:i.VexLen])
	case rex == rex2Prefix:
		rex = i.REX2
		g.reg, g.index, g.base = rex&0x40>>2, rex&0x20>>1, rex&0x10
	}
	g.w = rex&8 != 0
	g.reg |= i.ModRM>>3&7 | rex&4<<1
	g.base |= rex & 1 << 3
	g.index |= rex & 2 << 2
	g.register = i.HasModRM && (i.ModRM >= 0xC0 || i.opcodeRow().form.flags&registerOnly != 0)
	g.rm = i.ModRM&7 | g.base
	g.general = g.rm
	if i.VexLen == 4 && g.register {
		g.rm = g.rm&15 | g.index<<1
	}
}

// vexFields decodes the fields of VEX, EVEX or XOP, and returns the equivalent REX bits.
func (g *gnuText) vexFields(p []byte) (rex byte) {
	var v vexFields
	v.read(p)
	g.vvvv, g.l = v.vvvv, v.l
	g.reg = v.regHigh & 0x10
	if len(p) == 4 {
		g.evexFields(&v)
	}
	return v.w<<3 | v.regHigh&8>>1 | v.indexHigh>>2 | v.rmHigh>>3
}

// evexFields sets the fields that only EVEX has.
func (g *gnuText) evexFields(v *vexFields) {
	f := &g.i.opcodeRow().form
	g.z, g.b = v.z, v.b
	switch {
	case f.flags&conditional != 0:
		g.vvvv, g.condition = ^v.vvvv&15, ^v.vvvv>>1&8|v.aaa
	case f.flags&takesNF != 0 || g.i.Encoding == EncEvex4:
		g.nf = v.aaa&4 != 0 && f.flags&takesNF != 0
	default:
		g.aaa = v.aaa
	}
	if v.base4 {
		g.base = 0x10
	}
	if v.index4 {
		g.index = 0x10
	}
	g.size16 = g.i.Encoding == EncEvex4 && v.pp == 1
}

// template returns the alternative of the row that fits the instruction.
func (g *gnuText) template() *template {
	list := g.i.opcodeRow().texts
	for n := range list {
		t := &list[n]
		ok := true
		switch t.guard {
		case 'm':
			ok = !g.register
		case 'r':
			ok = g.register
		case 'w':
			ok = g.w
		case 'o':
			ok = g.size16 && !g.w
		case 'a':
			ok = g.addr32
		case 'B':
			ok = g.base != 0
		case 'P':
			ok = g.w && g.i.REX == rex2Prefix
		}
		if ok {
			return t
		}
	}
	return &list[len(list)-1]
}

// needsPseudo: the assembler would choose another encoding than the
// instruction's. It chooses VEX before EVEX where nothing needs EVEX.
func (g *gnuText) needsPseudo() bool {
	if g.i.VexLen != 4 {
		return true
	}
	if g.aaa != 0 || g.z || g.b || g.l == 2 || g.reg >= 16 || g.vvvv >= 16 || (g.base|g.index)&0x10 != 0 {
		return false
	}
	return !g.register || g.i.Encoding == EncEvex4 || g.rm < 16
}

// mnemonic writes the name, with the name of a predicate in it.
func (g *gnuText) mnemonic(predicate string) {
	t := g.t
	if predicate == "" {
		g.out = append(g.out, t.mnemonic...)
	} else {
		g.out = append(append(append(g.out, t.mnemonic[:t.predicateAt]...), predicate...), t.mnemonic[t.predicateAt:]...)
	}
	if g.i.Near16 {
		g.out = append(g.out, 'w')
	}
	g.hint()
	if g.i.opcodeRow().form.flags&conditional != 0 {
		defer g.flags()
		g.out = append(g.out, conditions[g.condition]...)
	}
	if t.suffix == 0 || t.suffixMemory && (g.register || (t.suffix == 'X' || t.suffix == 'x') && g.b) {
		return
	}
	if c := g.suffix(t.suffix); c != 0 {
		g.out = append(g.out, c)
	}
}

// suffix is the letter of a mnemonic, 0 for none.
func (g *gnuText) suffix(kind byte) byte {
	switch kind {
	case 'v', 'y', 'Q':
		switch {
		case g.w:
			return 'q'
		case kind == 'Q':
			return 0
		case kind == 'v' && g.size16:
			return 'w'
		}
		return 'l'
	case 'W':
		if g.size16 && !g.w {
			return 'w'
		}
		return 0
	case 'x':
		return 'x' + g.l
	case 'X':
		if g.l < 2 {
			return 'x' + g.l
		}
		return 0
	}
	return kind
}

func (g *gnuText) operand(o *operand) {
	if o.literal != "" {
		g.out = append(g.out, o.literal...)
		return
	}
	if o.star {
		g.out = append(g.out, '*')
	}
	switch o.source {
	case 'G':
		if o.kind == 'c' && g.locked() {
			g.reg = 8
		}
		g.name(o.kind, g.reg)
	case 'H':
		g.name(o.kind, g.vvvv)
	case 'O':
		g.name(o.kind, g.i.Opcode&7|g.base)
	case 'L':
		g.name(o.kind, g.i.code[g.i.Length-1]>>4)
	case '%':
		g.name(o.kind, 0)
	case 'I':
		g.immediate(o.kind)
	case 'J':
		target, _ := g.i.Target(g.at)
		g.hex(uint64(target))
	case 'A':
		g.segmentName()
		v := uint64(signedAt(g.i.code[g.i.ImmOff:][:g.i.ImmLen]))
		if g.i.ImmLen == 4 {
			v &= 1<<32 - 1
		}
		g.hex(v)
	case 'D':
		g.stringMemory("%es:(%", "di)")
	case 'S', 'X':
		name := "%ds:(%"
		if g.segment != 0 {
			name = segmentNames[g.segment&1] + "(%"
		}
		if o.source == 'S' {
			g.stringMemory(name, "si)")
		} else {
			g.stringMemory(name, "bx)")
		}
	case 'F':
		g.rounding(o.kind)
	default:
		switch {
		case !g.register && o.source != 'R':
			g.memory(o)
		case generalKinds[o.kind]:
			g.name(o.kind, g.general)
		default:
			g.name(o.kind, g.rm)
		}
	}
}

// name is a register's.
func (g *gnuText) name(kind, n byte) {
	switch kind {
	case 'v':
		switch {
		case g.w:
			kind = 'q'
		case g.size16:
			kind = 'w'
		default:
			kind = 'd'
		}
	case 'y':
		kind = 'd'
		if g.w {
			kind = 'q'
		}
	case 'a':
		kind = 'q'
		if g.addr32 {
			kind = 'd'
		}
	case 'z', 'g':
		kind = 'd'
		if g.size16 && !g.w {
			kind = 'w'
		}
	case '8':
		kind = 'q'
		if g.size16 && !g.w {
			kind = 'w'
		}
	case 'V', 'h', 'f':
		kind = g.vector(kind)
	case 'b':
		if g.i.REX == 0 && n >= 4 && n < 8 && g.i.VexLen == 0 {
			g.out = append(g.out, gnu8High[n]...)
			return
		}
	}
	switch {
	case lowRegisters[kind]:
		n &= 7
	case !generalKinds[kind] && g.i.REX == rex2Prefix: // R4, X4, B4 are of general registers
		n &= 15
	}
	g.out = append(g.out, registerClasses[kind][n&31]...)
}

// vector returns the class of a vector, of half of it or of a quarter. With rounding, L has the
// rounding mode, and the vector is whole.
func (g *gnuText) vector(kind byte) byte {
	l := g.l
	if g.b && g.register {
		l = 2
	}
	switch kind {
	case 'h':
		l = max(l, 1) - 1
	case 'f':
		l = max(l, 2) - 2
	}
	return [4]byte{'x', 'Y', 'Z', 'Z'}[l]
}

// immediate writes an immediate of the kind, as wide as the operand.
func (g *gnuText) immediate(kind byte) {
	b := g.i.code[:g.i.Length]
	n := len(b)
	var v uint64
	switch kind {
	case 'b', '8', 'p', 'c', 'o', 'l':
		v = uint64(b[n-1])
	case '4':
		v = uint64(b[n-1] & 15)
	case '2':
		v = uint64(b[n-2])
	case '3':
		v = uint64(b[n-3]) | uint64(b[n-2])<<8
	default:
		v = uint64(g.i.Imm())
		switch {
		case kind == 'w' || kind == 'e' && g.size16 && !g.w, (kind == 's' || kind == 'z' || kind == 'v' || kind == 'Q') && g.size16 && !g.w:
			v &= 1<<16 - 1
		case kind == 'd', (kind == 's' || kind == 'z' || kind == 'v') && !g.w:
			v &= 1<<32 - 1
		}
	}
	g.out = append(g.out, '$')
	g.hex(v)
}

func (g *gnuText) hex(v uint64) {
	g.out = strconv.AppendUint(append(g.out, '0', 'x'), v, 16)
}

// signed is a displacement from a register.
func (g *gnuText) signed(v int64) {
	if v < 0 {
		g.out = append(g.out, '-')
		v = -v
	}
	g.hex(uint64(v))
}

// conditions are the names of EVEX.SC of ccmp and ctest.
var conditions = [16]string{"o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "t", "f", "l", "ge", "le", "g"}

// flags writes the flags that ccmp and ctest set where the condition fails.
func (g *gnuText) flags() {
	g.out = append(g.out, " {dfv="...)
	first := true
	for bit, name := range [...]string{"of", "sf", "zf", "cf"} {
		if g.vvvv>>(3-bit)&1 == 0 {
			continue
		}
		if !first {
			g.out = append(g.out, ", "...)
		}
		first = false
		g.out = append(g.out, name...)
	}
	g.out = append(g.out, '}')
}

var roundings = [4]string{"{rn-sae}", "{rd-sae}", "{ru-sae}", "{rz-sae}"}

func (g *gnuText) rounding(kind byte) {
	if kind == 's' {
		g.out = append(g.out, "{sae}"...)
		return
	}
	g.out = append(g.out, roundings[g.l]...)
}
