package slot

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/profile"
	"kprobelab/x86"
)

// TestTrapFlagFixup has a row for each rule of the fix-up table: the state after the step in the
// slot, and after the fix-up. See docs/spec 2.8.
func TestTrapFlagFixup(t *testing.T) {
	const slot, at, tf = uint64(testSlot), uint64(testAt), x86.FlagTF
	for _, tt := range []struct {
		name, kernel, bytes string
		ip, top             uint64 // after the step
		wantIP, wantTop     uint64
		boosted             bool
	}{
		{"other_moves_ip", "5.8", "d1 e0", slot + 2, 7, at + 2, 7, false},
		{"pushf_hides_the_step", "5.8", "9c", slot + 1, tf | x86.FlagCF, at + 1, x86.FlagIF | x86.FlagCF, true},
		{"ret_stays", "5.8", "c3", 0x1234, 7, 0x1234, 7, true},
		{"ret_after_rep", "5.8", "f3 c3", 0x1234, 7, 0x1234, 7, true},
		{"ret_after_rep_in_2618_is_moved", "2.6.18", "f3 c3", 0x1234, 7, uint64(x86.Addr(0x1234).Add(testAt.Sub(testSlot))), 7, false},
		{"iret_stays", "5.8", "48 cf", 0x1234, 7, 0x1234, 7, true},
		{"call_moves_both", "5.8", "e8 10 00 00 00", slot + 0x15, slot + 5, at + 0x15, at + 5, false},
		{"call_register", "5.8", "41 ff d3", 0x1234, slot + 3, 0x1234, at + 3, false},
		{"call_memory", "5.8", "ff 15 00 00 00 00", 0x1234, slot + 6, 0x1234, at + 6, false},
		{"far_call_memory", "5.8", "ff 18", 0x1234, slot + 2, 0x1234, at + 2, false},
		{"jmp_register_marks_boosted", "5.8", "ff e1", 0x1234, 7, 0x1234, 7, true},
		{"jmp_far_marks_boosted", "5.8", "ff 28", 0x1234, 7, 0x1234, 7, true},
		{"push_memory_moves_ip", "5.8", "ff 30", slot + 2, 7, at + 2, 7, false},
		{"jcc_moves_ip", "5.8", "74 10", slot + 0x12, 7, at + 0x12, 7, false},
		{"vex_is_other", "5.8", "c5 f8 77", slot + 3, 7, at + 3, 7, false},
		{"ret_in_2618_never_boosts", "2.6.18", "c3", 0x1234, 7, 0x1234, 7, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := kernel(t, tt.kernel)
			s, err := Build(code(t, tt.bytes), testAt, testSlot, false, c)
			require.NoError(t, err)
			regs := hit(func(r *x86.PtRegs) { r.IP, r.Flags = tt.ip, x86.FlagTF|x86.FlagZF })
			m := fakeStack{0x8000: tt.top}
			rewrite, err := s.FixupTF(&regs, m, x86.FlagIF, c)
			require.NoError(t, err)
			require.False(t, rewrite)
			require.Equal(t, tt.wantIP, regs.IP)
			require.EqualValues(t, x86.FlagZF, regs.Flags)
			require.Equal(t, tt.wantTop, m[0x8000])
			require.Equal(t, tt.boosted, s.Boosted)
		})
	}
}

// TestModifiesIF holds docs/spec 2.8.
func TestModifiesIF(t *testing.T) {
	for bytes, want := range map[string]bool{
		"fa": true, "fb": true, "9d": true, "48 cf": true, "66 9d": true,
		"9c": false, "90": false, "c3": false,
	} {
		s, err := Build(code(t, bytes), testAt, testSlot, false, kernel(t, "5.8"))
		require.NoError(t, err)
		require.Equal(t, want, s.ModifiesIF, bytes)
	}
}

// TestJumpAppendedAfterTheFirstStep: the jump comes after the first step, if that ended right
// after the copy.
// See docs/spec 3.5.
func TestJumpAppendedAfterTheFirstStep(t *testing.T) {
	c := kernel(t, "4.4", func(c *profile.Config) { c.Slot.LazyBoost = true })
	s, err := Build(code(t, "55"), testAt, testSlot, false, c)
	require.NoError(t, err)
	require.False(t, s.Boosted)
	require.Equal(t, unhex(t, "55"), s.Bytes[:s.Len])

	regs := hit(func(r *x86.PtRegs) { r.IP = uint64(testSlot) + 1 })
	rewrite, err := s.FixupTF(&regs, fakeStack{}, 0, c)
	require.NoError(t, err)
	require.True(t, rewrite && s.Boosted)
	require.Equal(t, unhex(t, "55 e9 fb f0 ff c0"), s.Bytes[:s.Len])
	require.EqualValues(t, testAt+1, regs.IP)

	rewrite, err = s.FixupTF(&regs, fakeStack{}, 0, c)
	require.NoError(t, err)
	require.False(t, rewrite, "only once")
}

// TestTrapFlagFixupWithoutStack holds docs/spec 2.8.
func TestTrapFlagFixupWithoutStack(t *testing.T) {
	c := kernel(t, "5.8")
	s, err := Build(code(t, "9c"), testAt, testSlot, false, c)
	require.NoError(t, err)
	regs := hit(nil)
	_, err = s.FixupTF(&regs, fakeStack{}, 0, c)
	require.ErrorIs(t, err, errNoStack)
}
