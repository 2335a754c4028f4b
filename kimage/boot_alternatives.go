package kimage

import (
	"bytes"

	"kprobelab/decoder"
	"kprobelab/kimage/internal/opened"
	"kprobelab/profile"
	"kprobelab/x86"
)

// alternative is one struct alt_instr: text, what replaces it, and the CPU
// feature that decides.
type alternative struct {
	addr, repl       x86.Addr
	feature          feature
	addrLen, replLen int
	// not: replaced if the processor lacks the feature.
	not bool
	// call: the text is a call through memory that becomes a direct one.
	call bool
}

// altLayout tells the three layouts of struct alt_instr apart by size: 13
// bytes (4.0 to 5.12; with the padding's length), 12 (5.13 to 6.2, and 5.10.y),
// 14 (6.3 and later; with flags).
type altLayout int

// alternatives reads the owner's table, in its order, which is the order of
// application.
func (o tableOwner) alternatives() ([]alternative, altLayout) {
	at, data := o.table(altInstructions)
	fits := func(at x86.Addr, b []byte) bool { return o.img.usable(parseAlternative(at, b)) }
	l := o.img.pickLayout(at, data, []layout{{size: 12, fits: fits}, {size: 14, fits: fits}, {size: 13, fits: fits}})
	var list []alternative
	for off := 0; off+l.size <= len(data); off += l.size {
		a := parseAlternative(at.Add(int64(off)), data[off:off+l.size])
		if !o.img.usable(a) {
			o.img.ignore(altInstructions.section, a.addr)
			continue
		}
		list = append(list, a)
	}
	return list, altLayout(l.size)
}

// usable reports whether the alternative's two pieces of text exist and fit.
func (img *Image) usable(a alternative) bool {
	return a.addrLen > 0 && a.replLen <= a.addrLen && img.inExec(a.addr) && img.bytes(a.addr, a.addrLen) != nil &&
		(a.replLen == 0 || img.bytes(a.repl, a.replLen) != nil)
}

func parseAlternative(at x86.Addr, b []byte) alternative {
	a := alternative{addr: opened.Rel32(at, b), repl: opened.Rel32(at+4, b[4:])}
	number, lengths := le.Uint16(b[8:]), b[10:]
	if len(b) == 14 {
		flags := le.Uint16(b[10:])
		a.not, a.call = flags&1 != 0, flags&2 != 0
		lengths = b[12:]
	} else {
		a.not = number&0x8000 != 0
		number &= 0x7fff
	}
	a.feature = feature(number)
	a.addrLen, a.replLen = int(lengths[0]), int(lengths[1])
	return a
}

// readAlternativeSites makes the sites of the alternatives, one for each
// place, as long as its longest alternative.
func (img *Image) readAlternativeSites(o tableOwner) {
	list, _ := o.alternatives()
	longest := make(map[x86.Addr]int, len(list))
	for _, a := range list {
		longest[a.addr] = max(longest[a.addr], a.addrLen)
	}
	for addr, n := range longest {
		img.tables.addSite(SiteAlternative, addr, n)
	}
}

// alternativePatcher applies one owner's alternatives as boot does.
type alternativePatcher struct {
	img     *Image
	has     map[feature]bool
	forms   *patchForms
	decoder profile.Decoder
}

// apply patches in the table's order, for later entries of a place override
// earlier ones.
func (p *alternativePatcher) apply(list []alternative) {
	if p.forms.relocates {
		equalLengths(list)
	}
	for i := range list {
		a := &list[i]
		chosen := p.has[a.feature] != a.not
		if p.forms.relocates {
			p.modern(a, chosen)
			continue
		}
		text := p.img.bytes(a.addr, a.addrLen)
		if chosen {
			p.classic(a, text)
		}
		p.classicNops(text)
	}
}

// equalLengths gives the entries of one place the longest one's length:
// nested alternatives pad differently (6.12).
func equalLengths(list []alternative) {
	for i := range list {
		for j := i + 1; j < len(list) && list[j].addr == list[i].addr; j++ {
			n := max(list[i].addrLen, list[j].addrLen)
			list[i].addrLen, list[j].addrLen = n, n
		}
	}
}

// classic is the replacement to 6.2: only a lone call or jmp is relocated.
func (p *alternativePatcher) classic(a *alternative, text []byte) {
	buf := make([]byte, a.addrLen)
	copy(buf, p.img.bytes(a.repl, a.replLen))
	for i := a.replLen; i < len(buf); i++ {
		buf[i] = 0x90
	}
	if a.replLen == 5 {
		target := opened.Rel32(a.repl+5, buf[1:])
		switch buf[0] {
		case 0xe8:
			le.PutUint32(buf[1:], uint32(target.Sub(a.addr+5)))
		case 0xe9:
			p.shortJump(buf, target.Sub(a.addr))
		}
	}
	copy(text, buf)
}

// shortJump writes the jmp of that distance from its own start. Only a
// forward one becomes short: the kernel's test for backward ones never holds.
func (p *alternativePatcher) shortJump(buf []byte, dist int64) {
	if dist >= 0 && dist-2 <= 127 {
		buf[0], buf[1] = 0xeb, byte(dist-2)
		p.forms.nops.fill(buf[2:5])
		return
	}
	le.PutUint32(buf[1:], uint32(dist-5))
}

// classicNops makes each run of single-byte nops one of long ones.
func (p *alternativePatcher) classicNops(text []byte) {
	for i := 0; i < len(text); {
		k, err := decoder.DecodeKernel(text[i:], &p.decoder)
		if err != nil || k.Length == 0 {
			return
		}
		if k.Length != 1 || text[i] != 0x90 {
			i += k.Length
			continue
		}
		end := i
		for end < len(text) && text[end] == 0x90 {
			end++
		}
		if end-i > 1 {
			p.forms.nops.fill(text[i:end])
		}
		i = end
	}
}

// modern is the replacement from 6.3 on, which relocates every instruction.
func (p *alternativePatcher) modern(a *alternative, chosen bool) {
	text := p.img.bytes(a.addr, a.addrLen)
	if text == nil {
		return
	}
	buf := bytes.Clone(text)
	if chosen {
		n := copy(buf, p.img.bytes(a.repl, a.replLen))
		if a.call {
			if n = p.directCall(a, text, buf); n < 0 {
				return
			}
		}
		for i := n; i < len(buf); i++ {
			buf[i] = 0x90
		}
		p.relocate(a, buf)
	}
	p.joinNops(buf)
	copy(text, buf)
}

// joinNops makes the no-operations of code that is to be written long ones.
func (p *alternativePatcher) joinNops(buf []byte) {
	switch {
	case !p.forms.relocates:
		p.classicNops(buf)
	case p.forms.joinsJumps:
		p.jumpedNops(buf)
	default:
		p.modernNops(buf)
	}
}

// jumpedNops joins each run of nops of any form, and a jump before it that leads to its end.
func (p *alternativePatcher) jumpedNops(buf []byte) {
	jump, target := 0, 0
	for i := 0; i < len(buf); {
		k, err := decoder.DecodeKernel(buf[i:], &p.decoder)
		if err != nil || k.Length == 0 {
			return
		}
		next := i + k.Length
		n, nop := p.nopAt(buf[i:])
		switch {
		case k.Opcode[0] == x86.Jmp32 || k.Opcode[0] == jmp8:
			jump, target = i, next+int(k.Imm)
		case nop && n > 0:
			for next < len(buf) {
				n, more := p.nopAt(buf[next:])
				if n == 0 || !more {
					break
				}
				next += n
			}
			if target != 0 && next == target {
				i = jump
			}
			next = min(next, len(buf))
			p.forms.nops.fill(buf[i:next])
		default:
			target = 0
		}
		i = next
	}
}

// jmp8 is a jump by a distance of one byte.
const jmp8 = 0xeb

// directCall makes "call *ptr(%rip)" a direct call of the pointer's present value,
// relative to the replacement's address. It returns the length, 0 for a call of
// nop_func, -1 if the text is no such call.
func (p *alternativePatcher) directCall(a *alternative, text, buf []byte) int {
	if a.replLen != 5 || buf[0] != 0xe8 || len(text) < 6 || text[0] != 0xff || text[1] != 0x15 {
		return -1
	}
	slot := p.img.bytes(opened.Rel32(a.addr+6, text[2:]), 8)
	if slot == nil {
		return -1
	}
	target := opened.Abs64(slot)
	if target == 0 {
		return 5 // stays a call of BUG_func
	}
	if nop, ok := p.img.symbolAddr("nop_func"); ok && nop == target {
		return 0
	}
	le.PutUint32(buf[1:], uint32(target.Sub(a.repl+5)))
	return 5
}

// relocate corrects what depends on the instruction pointer and points
// outside the replacement, and shortens jumps.
func (p *alternativePatcher) relocate(a *alternative, buf []byte) {
	moved := uint32(a.repl.Sub(a.addr))
	outside := func(off int64) bool { return off < 0 || off > int64(a.replLen) }
	for i := 0; i < len(buf); {
		k, err := decoder.DecodeKernel(buf[i:], &p.decoder)
		if err != nil || k.Length == 0 || i+k.Length > len(buf) {
			return
		}
		next := i + k.Length
		if isBranch(&k) {
			if outside(int64(next)+k.Imm) && k.ImmLen == 4 {
				at := buf[i+k.ImmOff:]
				le.PutUint32(at, le.Uint32(at)+moved)
			}
			if k.Opcode[0] == 0xe9 {
				shortenJump(buf[i:next], int32(k.Imm)+int32(moved)+3)
			}
		}
		if k.RIPRelative() && outside(int64(next)+int64(k.Disp)) {
			at := buf[i+k.DispOff:]
			le.PutUint32(at, le.Uint32(at)+moved)
		}
		i = next
	}
}

// isBranch reports a call, jmp or jcc with a relative target.
func isBranch(k *decoder.Kernel) bool {
	op := k.Opcode[0]
	return op == 0xe8 || op == 0xe9 || op == 0xeb || op>>4 == 7 || op == 0x0f && k.Opcode[1]>>4 == 8
}

// shortenJump makes jmp rel32 a jmp rel8 followed by int3s, if the distance fits.
func shortenJump(insn []byte, dist int32) {
	if dist != int32(int8(dist)) {
		return
	}
	insn[0], insn[1] = 0xeb, byte(dist)
	fillInt3(insn[2:])
}

// modernNops joins each run of nops of any form.
func (p *alternativePatcher) modernNops(buf []byte) {
	for i := 0; i < len(buf); {
		n, nop := p.nopAt(buf[i:])
		if n == 0 {
			return
		}
		end := i + n
		for nop && end < len(buf) {
			n, more := p.nopAt(buf[end:])
			if n == 0 || !more {
				break
			}
			end += n
		}
		if nop {
			if i+n == len(buf) {
				return // one at the end is taken for a long one already
			}
			end = min(end, len(buf))
			p.forms.nops.fill(buf[i:end])
		}
		i = end
	}
}

// nopAt returns the length of the instruction at b, 0 if there is none, and whether it
// is a nop (not pause).
func (p *alternativePatcher) nopAt(b []byte) (int, bool) {
	k, err := decoder.DecodeKernel(b, &p.decoder)
	if err != nil {
		return 0, false
	}
	if k.Opcode[0] == 0x90 {
		return k.Length, b[0] != 0xf3
	}
	return k.Length, k.Opcode[0] == 0x0f && k.Opcode[1] == 0x1f
}
