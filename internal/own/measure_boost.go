//go:build cgo && linux && amd64

package own

import "kprobelab/profile"

// boostForms are instructions that some release boosts and another does not, with
// the first rule that boosts them; none after it changed its mind, except where
// until says so.
var boostForms = []struct {
	code        []byte
	from, until profile.BoostRule
}{
	{[]byte{0x90}, profile.Boost44, 0},
	{[]byte{0x89, 0xd8}, profile.Boost44, 0},
	{[]byte{0x2e, 0x90}, profile.Boost58, profile.Boost61},
	{[]byte{0x67, 0x90}, profile.Boost58, profile.Boost61},
	{[]byte{0xff, 0xe0}, profile.Boost61, 0},
	{[]byte{0xd1, 0xe0}, profile.Boost612, 0},
	{[]byte{0xc1, 0xe8, 0x03}, profile.Boost612, 0},
	{[]byte{0xf7, 0xd8}, profile.Boost612, 0},
	{[]byte{0xf6, 0xd0}, profile.Boost612, 0},
	{[]byte{0xff, 0xc0}, profile.Boost612, 0},
	{[]byte{0xfe, 0xc8}, profile.Boost612, 0},
}

func (m *measuring) boost() error {
	rules := map[profile.BoostRule]bool{profile.Boost44: true, profile.Boost58: true, profile.Boost61: true, profile.Boost612: true}
	for _, f := range boostForms {
		on, err := m.CanBoost(f.code, 0)
		if err != nil {
			return err
		}
		for r := range rules {
			if expect := r >= f.from && (f.until == 0 || r < f.until); expect != on {
				delete(rules, r)
			}
		}
	}
	if len(rules) == 1 {
		for r := range rules {
			m.say("Slot.BoostRule", r, "can_boost of %d forms", len(boostForms))
		}
	}
	return nil
}
