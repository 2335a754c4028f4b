package host

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSymbolOfAProgram(t *testing.T) {
	p := &Program{Functions: []ProgramSymbol{{Name: "a", Addr: 0x10, Size: 8}, {Name: "mark", Addr: 0x14}, {Name: "b", Addr: 0x20, Size: 4}}}
	for addr, want := range map[uint64]string{0x0f: "", 0x10: "a", 0x17: "a", 0x18: "", 0x14: "mark", 0x15: "a", 0x20: "b", 0x24: ""} {
		name, offset, ok := p.Symbol(addr)
		require.Equal(t, want, name, "%#x", addr)
		require.Equal(t, want != "", ok, "%#x", addr)
		if want == "b" {
			require.Zero(t, offset)
		}
	}
	p.Movable = true
	_, _, ok := p.Symbol(0x10)
	require.False(t, ok, "where it is loaded is not known")
	p.Base = 0x1000
	name, _, _ := p.Symbol(0x1010)
	require.Equal(t, "a", name)
}
