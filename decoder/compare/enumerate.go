package compare

// tail follows the opcode and ModRM of every enumerated string. Its bytes differ, so that a field
// that is read at a wrong place changes the length.
var tail = []byte{0xB1, 0xD2, 0xD3, 0xE4, 0xF5, 0x06, 0x17, 0x28, 0x39, 0x4A, 0x5B, 0x6C}

// heads that enumerate puts in front of legacy opcodes: mandatory prefixes, alone and in
// the orders where another one counts, and prefixes that select nothing.
var legacyHeads = [][]byte{
	{}, {0x66}, {0xF3}, {0xF2}, {0x66, 0xF3}, {0x66, 0xF2}, {0xF3, 0x66}, {0xF2, 0x66},
	{0x2E}, {0x67}, {0xF0}, {0xF3, 0xF2},
}

// operandForms is a register and a memory operand with every ModRM.reg, with and without SIB.
var operandForms = func() (list []byte) {
	for _, mod := range []byte{0x00, 0xC0} {
		for reg := byte(0); reg < 8; reg++ {
			list = append(list, mod|reg<<3, mod|reg<<3|4)
		}
	}
	return list
}()

// Enumerate visits strings of MaxInsnSize bytes that cover every opcode of every map: legacy with
// prefixes and REX, REX2, VEX, EVEX and XOP with each map number, pp and W, each with the forms of
// ModRM. The order never changes: recorded answers rely on it. The slice is valid during the visit
// only.
func Enumerate(visit func(b []byte)) {
	e := &enumerator{visit: visit}
	for _, head := range legacyHeads {
		for _, rex := range [][]byte{{}, {0x48}, {0x41}, {0x4F}} {
			forms := operandForms
			if len(rex) != 0 {
				forms = every(4, forms)
			}
			for _, escape := range [][]byte{{}, {0x0F}, {0x0F, 0x38}, {0x0F, 0x3A}} {
				e.opcodes(forms, head, rex, escape)
			}
		}
	}
	for _, head := range legacyHeads[:6] {
		for _, payload := range []byte{0x00, 0x08, 0x80, 0x88, 0x55, 0xD5} {
			e.opcodes(operandForms, head, []byte{0xD5, payload})
		}
	}
	for pp := byte(0); pp < 4; pp++ {
		for _, high := range []byte{0x78, 0xF8, 0x7C} {
			e.opcodes(operandForms, []byte{0xC5, high | pp})
		}
	}
	e.threeBytes(0xC4)
	e.threeBytes(0x8F)
	e.evex()
}

type enumerator struct {
	visit func(b []byte)
	b     [40]byte
}

// opcodes visits the parts, each opcode and each ModRM in turn.
func (e *enumerator) opcodes(forms []byte, parts ...[]byte) {
	b := e.b[:0]
	for _, p := range parts {
		b = append(b, p...)
	}
	at := len(b)
	b = append(append(b, 0, 0), tail...)
	for op := range 256 {
		for _, modRM := range forms {
			b[at], b[at+1] = byte(op), modRM
			e.visit(b[:15])
		}
	}
}

// threeBytes visits VEX of three bytes, or XOP, with every map number.
func (e *enumerator) threeBytes(lead byte) {
	for m := byte(0); m < 32; m++ {
		forms := operandForms[:2]
		if m >= 1 && m <= 10 {
			forms = operandForms
		}
		for _, wl := range []byte{0x00, 0x80, 0x04} {
			some := forms
			if wl == 0x04 {
				some = every(5, forms)
			}
			for pp := byte(0); pp < 4; pp++ {
				e.opcodes(some, []byte{lead, 0xE0 | m, 0x78 | wl | pp})
			}
		}
	}
}

func (e *enumerator) evex() {
	for m := byte(0); m < 8; m++ {
		for _, w := range []byte{0x00, 0x80} {
			for pp := byte(0); pp < 4; pp++ {
				for _, last := range []byte{0x08, 0x28, 0x48, 0x18} {
					forms := every(6, operandForms)
					if last == 0x08 {
						forms = operandForms
					}
					e.opcodes(forms, []byte{0x62, 0xF0 | m, 0x7C | w | pp, last})
				}
			}
		}
	}
}

// every returns each n-th element, from the first on.
func every(n int, list []byte) (some []byte) {
	for i := 0; i < len(list); i += n {
		some = append(some, list[i])
	}
	return some
}
