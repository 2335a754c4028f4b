package assemble

import (
	"strings"
	"sync"

	"kprobelab/decoder"
)

// form is an instruction without its operands.
type form struct {
	prefix string // 66, f3, f2, or none
	wide   bool   // REX.W
	opcode string // with its escapes
	modrm  bool
	reg    byte // ModRM.reg of the sample: a part of the opcode, or any
}

// forms lists the encodable forms of each mnemonic.
var forms = sync.OnceValue(func() map[string][]form {
	type named struct {
		name string
		form
	}
	all, seen := map[string][]form{}, map[named]bool{}
	add := func(b []byte) {
		i, err := decoder.Decode(b)
		if err != nil {
			return
		}
		f := form{opcode: string(b[i.OpcodeOff:][:i.OpcodeLen]), wide: i.REX&8 != 0, modrm: i.HasModRM, reg: i.ModRM >> 3 & 7}
		for _, p := range b[:i.PrefixLen] {
			if p != i.REX {
				f.prefix += string([]byte{p})
			}
		}
		text := i.Text(0)
		name, _, operands := strings.Cut(text, " ")
		if decoder.PrefixWord(name) { // a prefix that says nothing here
			return
		}
		if !operands && i.HasModRM { // ModRM is a part of the opcode
			f.opcode, f.modrm, f.reg = f.opcode+string([]byte{i.ModRM}), false, 0
		}
		if n := (named{name, f}); !seen[n] {
			seen[n] = true
			all[name] = append(all[name], f)
		}
	}
	for _, e := range []decoder.Encoding{decoder.EncPrimary, decoder.Enc0F, decoder.Enc0F38} {
		for _, b := range decoder.Samples(e, selectors) {
			add(b)
			if i, err := decoder.Decode(b); err == nil && i.HasModRM {
				for reg := range byte(8) { // a mnemonic depends on reg, and on mod: addl in memory is add of a register
					for _, mod := range []byte{0, 0xC0} {
						b[i.ModRMOff] = mod | reg<<3
						add(b)
					}
				}
			}
		}
	}
	return all
})

// selectors is how many prefixes, with REX.W and without, an opcode may have.
const selectors = 16

// encode is a form with these fields: registers' numbers, of 16, and a memory operand,
// or none.
func (f *form) encode(reg, rm byte, m *memory, rex bool) []byte {
	var b []byte
	b = append(b, f.prefix...)
	x := byte(0x40)
	if f.wide {
		x |= 8
	}
	x |= reg >> 3 << 2
	if m != nil {
		x |= m.index>>3<<1 | m.base>>3
	} else {
		x |= rm >> 3
	}
	if x != 0x40 || rex {
		b = append(b, x)
	}
	b = append(b, f.opcode...)
	switch {
	case !f.modrm && rm&7 != 0: // the register is a part of the opcode, which has a form of its own
		return nil
	case !f.modrm:
	case m != nil:
		b = m.encode(b, reg&7)
	default:
		b = append(b, 0xC0|reg&7<<3|rm&7)
	}
	return b
}
