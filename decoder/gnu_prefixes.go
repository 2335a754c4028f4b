package decoder

import (
	"strconv"
	"strings"
)

// Prefixes in GNU syntax: each that the instruction's text does not show stands
// before the mnemonic, in the order of the bytes.

// prefixes writes the words of the prefixes.
func (g *gnuText) prefixes() {
	if g.i.PrefixLen == 0 {
		return
	}
	if b := g.i.legacyPrefixes(); len(b) > 1 || len(b) == 1 && b[0]&0xF0 != 0x40 {
		g.legacyPrefixes(b)
	}
	switch {
	case g.i.REX == rex2Prefix:
		g.rex2Word()
	case g.i.REX != 0 && g.i.VexLen == 0:
		g.rexWord()
	}
}

func (g *gnuText) word(s string) { g.out = append(append(g.out, s...), ' ') }

// legacyPrefixes writes those before REX. Of several of a group, the last one
// counts.
func (g *gnuText) legacyPrefixes(b []byte) {
	r := g.i.opcodeRow()
	last := [5]int{-1, -1, -1, -1, -1} // 66, 67, segment, F3 or F2, REX
	for n, c := range b {
		switch prefixKind[c] {
		case prefixSize:
			last[0] = n
		case prefixAddress:
			last[1] = n
		case prefixSegment:
			if c == g.segment || g.segment == 0 {
				last[2] = n
			}
		case prefixRep, prefixRepne:
			last[3] = n
		case prefixREX:
			last[4] = n
		}
	}
	for n, c := range b {
		switch prefixKind[c] {
		case prefixSize:
			if n != last[0] || !g.sizeShown(r) {
				g.word("data16")
			}
		case prefixAddress:
			if n != last[1] || !g.addressShown() {
				g.word("addr32")
			}
		case prefixSegment:
			g.segmentWord(c, n == last[2])
		case prefixLock:
			if r.form.flags&cr8 == 0 {
				g.word("lock")
			}
		case prefixRep, prefixRepne:
			if n != last[3] || !repSelects(r) || g.i.VexLen != 0 {
				g.repWord(c, r)
			}
		case prefixREX:
			if n != last[4] || g.i.REX == 0 {
				g.word(rexNames[c&15])
			}
		}
	}
}

// repSelects: F3 or F2 is a part of the opcode.
func repSelects(r *row) bool {
	const none = 0x0303 // neither, in all selectors
	return r.sel&none == 0
}

// sizeSelects: 66 is a part of the opcode.
func sizeSelects(r *row) bool {
	const without = 0x5555
	return r.sel&without == 0
}

func (g *gnuText) sizeShown(r *row) bool {
	switch {
	case g.i.VexLen != 0:
		return false
	case sizeSelects(r), g.i.Near16:
		return true
	}
	return !g.w && (g.t.usesSize || g.t.rmSize && g.register)
}

func (g *gnuText) addressShown() bool {
	return g.addr32 && !g.t.absolute && (g.memoryShown() || g.t.usesAddress)
}

// memoryShown: the text has a memory operand.
func (g *gnuText) memoryShown() bool {
	if g.i.HasModRM {
		return !g.register && len(g.t.operands) > 0
	}
	return g.t.usesMemory
}

// segmentWords are the names of the segment prefixes.
var segmentWords = [256]string{0x2E: "cs", 0x36: "ss", 0x3E: "ds", 0x26: "es", 0x64: "fs", 0x65: "gs"}

func (g *gnuText) segmentWord(c byte, last bool) {
	switch {
	case last && g.hinted(c) != "":
		return
	case last && c >= 0x64 && g.memoryShown() && (g.i.HasModRM || g.t.usesSegment):
		return
	case c == 0x3E && (g.i.Class == ClassIndirectCall || g.i.Class == ClassIndirectJmp):
		g.word("notrack")
	default:
		g.word(segmentWords[c])
	}
}

// repWord is the word of an F3 or F2 that no opcode takes.
func (g *gnuText) repWord(c byte, r *row) {
	words := [2]string{"repz", "repnz"}
	switch m := g.t.mnemonic; {
	case g.i.Encoding == EncPrimary && g.i.Opcode >= 0x6C && g.i.Opcode <= 0x6F,
		g.i.Encoding == EncPrimary && (g.i.Opcode == 0xA4 || g.i.Opcode == 0xA5 || g.i.Opcode >= 0xAA && g.i.Opcode <= 0xAD):
		words[0] = "rep"
	case g.i.Encoding <= Enc0F && g.branches():
		words[1] = "bnd"
	case r.form.flags&lockable != 0 && g.locked(), m == "xchg" && g.i.HasModRM && !g.register:
		words = [2]string{"xrelease", "xacquire"}
	case m == "mov" && !g.register && g.i.Encoding == EncPrimary && (g.i.Opcode&^1 == 0x88 || g.i.Opcode&^1 == 0xC6):
		words[0] = "xrelease"
	}
	g.word(words[c&1^1])
}

// branches: it is a near branch, which BND may stand before.
func (g *gnuText) branches() bool {
	switch g.i.Class {
	case ClassCall, ClassIndirectCall, ClassJmp, ClassIndirectJmp, ClassJcc, ClassRet:
		return true
	}
	return false
}

func (g *gnuText) locked() bool {
	for _, c := range g.i.legacyPrefixes() {
		if c == 0xF0 {
			return true
		}
	}
	return false
}

var rexNames = func() (t [16]string) {
	for n := range t {
		t[n] = "rex"
		if n != 0 {
			t[n] += "."
		}
		for bit, c := range "WRXB" {
			if n>>(3-bit)&1 != 0 {
				t[n] += string(c)
			}
		}
	}
	return t
}()

// rexWord writes the REX prefix that has a bit which the text does not show, or
// none at all and no register that needs it.
func (g *gnuText) rexWord() {
	rex := g.i.REX
	if rex&^(0x40|g.shownBits(rex)) != 0 || rex == 0x40 && !g.usesLowByte() {
		g.word(rexNames[rex&15])
	}
}

// rex2Word writes a REX2 prefix that has a bit which the text does not show, or no
// register that needs it. pushp, popp and jmpabs have no other encoding.
func (g *gnuText) rex2Word() {
	p := g.i.REX2 & 0x7F
	shown := g.shownBits(p)
	if g.memoryShown() {
		shown |= 1
	}
	switch {
	case g.i.Encoding == EncRex2, g.t.guard == 'P':
	case p&^(shown|g.shownHighBits()) != 0:
		g.out = append(strconv.AppendUint(append(g.out, "{rex2 0x"...), uint64(g.i.REX2), 16), "} "...)
	case p&0x70 == 0:
		g.word("{rex2}")
	}
}

// shownHighBits returns the bits R4, X4, B4 of REX2 that the text shows: bits of general registers
// and of addresses.
func (g *gnuText) shownHighBits() (shown byte) {
	if g.memoryShown() {
		shown = 0x30
	}
	for _, o := range g.t.operands {
		switch {
		case !generalKinds[o.kind]:
		case o.source == 'G':
			shown |= 0x40
		case o.source == 'O', o.source == 'E' && g.register, o.source == 'R':
			shown |= 0x10
		}
	}
	return shown
}

// shownBits are the bits W, R, X, B of a REX prefix that the text shows.
func (g *gnuText) shownBits(rex byte) (shown byte) {
	i := g.i
	if g.t.usesW || g.t.rmW && g.register || rex&8 != 0 && selectsW(i.opcodeRow()) {
		shown |= 8
	}
	if i.HasModRM {
		if g.t.usesReg {
			shown |= 4
		}
		if !g.register && i.HasSIB {
			shown |= 2
		}
		if g.register && g.t.usesRm || !g.register && len(g.t.operands) > 0 && !i.RIPRelative {
			shown |= 1
		}
	} else if g.t.usesRm {
		shown |= 1
	}
	return shown
}

// selectsW: all of the row has REX.W.
func selectsW(r *row) bool { return r.sel&0xFF == 0 }

// usesLowByte reports whether the text shows a register of one byte that a REX without bits turns
// into spl, bpl, sil or dil.
func (g *gnuText) usesLowByte() bool {
	for _, o := range g.t.operands {
		if o.kind != 'b' || o.source == 'I' {
			continue
		}
		n := g.reg
		switch o.source {
		case 'E', 'R':
			if !g.register {
				continue
			}
			n = g.rm
		case 'O':
			n = g.i.Opcode & 7
		}
		if n >= 4 && n < 8 {
			return true
		}
	}
	return false
}

// hinted is the suffix of a conditional branch that a segment prefix makes likely
// or unlikely, "" for none.
func (g *gnuText) hinted(c byte) string {
	if g.i.Class != ClassJcc && g.i.Class != ClassLoop {
		return ""
	}
	switch c {
	case 0x2E:
		return ",pn"
	case 0x3E:
		return ",pt"
	}
	return ""
}

// hint writes the suffix of a conditional branch.
func (g *gnuText) hint() {
	suffix := ""
	for _, c := range g.i.legacyPrefixes() {
		if prefixKind[c] == prefixSegment {
			suffix = g.hinted(c)
		}
	}
	g.out = append(g.out, suffix...)
}

// PrefixWord reports whether a word of a text is a prefix's, which stands before
// the mnemonic: lock, rep, data16, rex.W, {evex} and the like.
func PrefixWord(s string) bool {
	switch s {
	case "lock", "rep", "repz", "repnz", "bnd", "notrack", "xacquire", "xrelease", "data16", "addr32",
		"cs", "ds", "es", "fs", "gs", "ss", "rex":
		return true
	}
	return strings.HasPrefix(s, "rex.") || strings.HasPrefix(s, "{")
}
