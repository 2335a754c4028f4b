package slot

// opcodeSet is a set of opcode bytes.
type opcodeSet [4]uint64

func (s *opcodeSet) has(op byte) bool { return s[op>>6]>>(op&63)&1 != 0 }

// span is an inclusive range of opcode bytes.
type span struct{ first, last byte }

func one(op byte) span { return span{op, op} }

func setOf(spans ...span) *opcodeSet {
	s := new(opcodeSet)
	for _, r := range spans {
		for op := int(r.first); op <= int(r.last); op++ {
			s[op>>6] |= 1 << (op & 63)
		}
	}
	return s
}

// without is the complement of the spans.
func without(spans ...span) *opcodeSet {
	s := setOf(spans...)
	for i := range s {
		s[i] = ^s[i]
	}
	return s
}

// boostTwoByte are the boostable opcodes 0F xx, in every release from 4.4 on
// (twobyte_is_boostable; docs/spec 3.4). Prefixes are not looked at.
var boostTwoByte = setOf(
	span{0x02, 0x03}, one(0x06), span{0x08, 0x09}, one(0x1F), span{0x20, 0x23}, one(0x31),
	span{0x40, 0x4F}, span{0x60, 0x6B}, span{0x6E, 0x6F},
	span{0x74, 0x77}, span{0x7E, 0x7F}, span{0x90, 0x9F},
	span{0xA0, 0xA1}, span{0xA3, 0xA5}, span{0xA8, 0xA9}, span{0xAB, 0xAD}, one(0xAF),
	span{0xB0, 0xB7}, span{0xBB, 0xBF}, span{0xC0, 0xC1}, span{0xC8, 0xCF},
	span{0xD1, 0xD3}, one(0xD5), span{0xD8, 0xD9}, span{0xDB, 0xDD}, one(0xDF),
	span{0xE1, 0xE2}, one(0xE5), span{0xE8, 0xE9}, span{0xEB, 0xED}, one(0xEF),
	span{0xF1, 0xF3}, one(0xF5), span{0xF8, 0xFA}, span{0xFC, 0xFE},
)

// boost61Never are the one-byte opcodes that are not boostable from 5.13 on.
// Some of these have a rule by ModRM.reg, which goes first.
var boost61Never = setOf(
	one(0x62),        // bound; EVEX
	span{0x70, 0x7F}, // jcc
	one(0x9A),        // far call
	span{0xC0, 0xC1}, // shifts
	one(0xCC),        // int3
	span{0xCD, 0xCE}, // int n, into
	span{0xD0, 0xD3}, // shifts
	one(0xD6),        // undefined
	span{0xD8, 0xDF}, // x87
	span{0xE0, 0xE3}, // loop, jcxz
	span{0xE8, 0xE9}, // call, jmp
	one(0xEB),        // jmp
	span{0xF0, 0xF4}, // lock, int1, rep, hlt
	span{0xF6, 0xF7}, // not, neg, mul, div, test
	span{0xFE, 0xFF}, // inc, dec, call, jmp, push
)

// boost61ByReg: for an opcode, the boostable values of ModRM.reg, a bit each.
var boost61ByReg = map[byte]byte{
	0xFF: 1 << 4, // near indirect jump
}

// boost612ByReg adds the opcodes that 6.12 allows. The undefined members of each group are left
// out.
var boost612ByReg = map[byte]byte{
	0xC0: ^byte(1 << 6), 0xC1: ^byte(1 << 6),
	0xD0: ^byte(1 << 6), 0xD1: ^byte(1 << 6), 0xD2: ^byte(1 << 6), 0xD3: ^byte(1 << 6),
	0xF6: ^byte(1 << 1), 0xF7: ^byte(1 << 1),
	0xFE: 1<<0 | 1<<1,
	0xFF: 1<<0 | 1<<1 | 1<<4,
}

// boost58 are the boostable one-byte opcodes to 5.12 (docs/spec 3.5). The
// address-size prefix was tested against the wrong value in 5.8 and never
// stopped a boost; 4.4 tests it in the walk.
var boost58 = without(
	one(0x62), span{0x70, 0x7F}, one(0x9A), one(0x2E),
	span{0xC0, 0xC1}, span{0xCC, 0xCE},
	span{0xD0, 0xD3}, one(0xD6), span{0xD8, 0xDF},
	span{0xE0, 0xE3}, span{0xE8, 0xE9}, one(0xEB),
	span{0xF0, 0xF4}, span{0xF6, 0xF7}, span{0xFE, 0xFF},
)

// boost44Skipped are the bytes that 4.4 walks over: REX and prefixes.
var boost44Skipped = setOf(
	span{0x40, 0x4F}, span{0x64, 0x66}, one(0xF0), span{0xF2, 0xF3},
	one(0x26), one(0x36), one(0x3E),
)
