package profile

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFieldsGoRound: SetField accepts the values that Fields returns for each profile, and makes
// that profile of another one.
func TestFieldsGoRound(t *testing.T) {
	for _, name := range All() {
		want, _ := Named(name)
		got, _ := Named(Default)
		for _, f := range want.Fields() {
			require.NoError(t, got.SetField(f.Name, f.Value))
		}
		got.Name, got.Describes = want.Name, want.Describes
		require.Equal(t, want, got)
	}
}

func TestFieldsThatCannotBeSet(t *testing.T) {
	c, _ := Named(Default)
	before := *c
	for name, value := range map[string]string{
		"Nowhere": "true", "Check": "true", "Check.": "true", "Name": "x", "": "",
		"Check.PaddingInt3": "perhaps", "Slot.BoostRule": "7", "HZ": "fast", "ModuleBase": "-1",
	} {
		require.Error(t, c.SetField(name, value), name)
	}
	require.Equal(t, before, *c)
}

func TestFieldsAreNamed(t *testing.T) {
	c, _ := Named("6.12")
	require.Contains(t, c.Fields(), Field{"Slot.BoostRule", "Boost612"})
	require.Contains(t, c.Fields(), Field{"ModuleBase", "0xffffffffc0000000"})
	require.Contains(t, c.Fields(), Field{"Check.ExceptionInsn", "true"})
	require.Equal(t, "Boost58", Boost58.String())
}

func TestBoostTableGoesRound(t *testing.T) {
	want := BoostTable{Known: true, CS: true}
	want.One[0x90], want.One[0xff], want.Two[1] = 0xff, 1<<4, 1<<7
	require.True(t, want.Has2(0x0f))
	got, err := ParseBoostTable(want.String())
	require.NoError(t, err)
	require.Equal(t, want, got)
	for _, bad := range []string{"00", "zz", want.String() + "00", want.String()[2:] + "04"} {
		_, err := ParseBoostTable(bad)
		require.Error(t, err, bad)
	}
	c, _ := Named(Default)
	require.NoError(t, c.SetField("Slot.BoostTable", want.String()))
	require.Equal(t, want, c.Slot.BoostTable)
}
