package uprobes

// span is an inclusive range of opcode bytes.
type span struct{ first, last byte }

type opcodeSet [256]bool

func (s *opcodeSet) has(op byte) bool { return s[op] }

func setOf(spans ...span) *opcodeSet {
	s := new(opcodeSet)
	for _, r := range spans {
		for op := int(r.first); op <= int(r.last); op++ {
			s[op] = true
		}
	}
	return s
}

// oneByte are the opcodes that may be probed (good_insns_64). The first byte decides. 0f is in the
// set, so all opcodes of two bytes and more may be probed. After a VEX or EVEX prefix the opcode
// byte is looked up as if it had no prefix.
var oneByte = setOf(
	span{0x00, 0x05}, span{0x08, 0x0d}, span{0x0f, 0x15}, span{0x18, 0x1d}, span{0x20, 0x26}, span{0x28, 0x2e},
	span{0x30, 0x36}, span{0x38, 0x3e}, // arithmetic, prefixes; 0f
	span{0x40, 0x5f},                                     // REX, push, pop
	span{0x63, 0x6b},                                     // movsxd, push, imul
	span{0x70, 0x81}, span{0x83, 0x99}, span{0x9b, 0xcb}, // all that 64-bit mode has
	span{0xd0, 0xd3}, span{0xd7, 0xe3}, // shifts, x87, loops
	span{0xe8, 0xe9}, span{0xeb, 0xeb}, // calls and jumps
	span{0xf0, 0xf0}, span{0xf2, 0xf3}, span{0xf5, 0xf9}, span{0xfc, 0xff}, // flags, groups
)
