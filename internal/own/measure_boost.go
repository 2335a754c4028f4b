package own

import (
	"fmt"
	"slices"

	"kprobelab/profile"
)

// telling are instructions that tell the known rules apart, with the rules that
// boost them.
var telling = []struct {
	code  []byte
	rules []profile.BoostRule
}{
	{[]byte{0x67, 0x90}, []profile.BoostRule{profile.Boost58}},
	{[]byte{0xff, 0xe0}, []profile.BoostRule{profile.Boost61, profile.Boost612}},
	{[]byte{0xd1, 0xe0}, []profile.BoostRule{profile.Boost612}},
}

// boost asks can_boost about every opcode, and names the rule that has these answers
// to the telling ones.
func (m *measuring) boost() error {
	nop, err := m.CanBoost([]byte{0x90}, 0)
	if err != nil {
		return err
	}
	if !nop {
		return fmt.Errorf("can_boost does not boost a nop: %w", ErrNonsense)
	}
	if m.form == boostBytes {
		m.say("Slot.BoostRule", profile.Boost44, "can_boost takes bytes, not an instruction")
		return nil
	}
	rules := []profile.BoostRule{profile.Boost58, profile.Boost61, profile.Boost612}
	for _, f := range telling {
		on, err := m.CanBoost(f.code, 0)
		if err != nil {
			return err
		}
		rules = slices.DeleteFunc(rules, func(r profile.BoostRule) bool { return slices.Contains(f.rules, r) != on })
	}
	if len(rules) == 1 {
		m.say("Slot.BoostRule", rules[0], "can_boost of 67 90, ff e0 and d1 e0")
	}
	t, err := m.boostTable()
	if err == nil {
		m.say("Slot.BoostTable", t, "can_boost of every opcode")
	}
	return err
}

func (m *measuring) boostTable() (profile.BoostTable, error) {
	t := profile.BoostTable{Known: true}
	var failed error
	ask := func(code ...byte) bool {
		if failed != nil {
			return false
		}
		on, err := m.CanBoost(code, 0)
		failed = err
		return on
	}
	for op := range 256 {
		for reg := range 8 {
			if ask(append(oneByte(byte(op)), 0xc0|byte(reg)<<3)...) {
				t.One[op] |= 1 << reg
			}
		}
		if ask(0x0f, byte(op), 0xc0) {
			t.Two[op>>3] |= 1 << (op & 7)
		}
	}
	t.CS, t.AddrSize = ask(0x2e, 0x90), ask(0x67, 0x90)
	return t, failed
}

// oneByte makes the kernel's decoder take a byte for an opcode: after REX, a legacy
// prefix is one; after VEX, so is 0F.
func oneByte(op byte) []byte {
	if op == 0x0f {
		return []byte{0xc5, 0xf8, op}
	}
	return []byte{0x40, op}
}
