package kimage

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A count of eight bytes has its flag and its interrupts in other places than one of
// four (7.3).
func TestPreemptCountBySize(t *testing.T) {
	for name, c := range map[string]struct {
		symbol             Symbol
		at                 PreemptCounter
		preemptible        []byte // as such a kernel has it
		noResched, hardIRQ uint64
		nmi                uint32
	}{
		"four_bytes":  {Symbol{Name: "__preempt_count", Addr: 0x1fb40, Size: 4}, PreemptCounter{0x1fb40, 4}, []byte{0, 0, 0, 0x80}, 1 << 31, 0x000f0000, 0x110000},
		"eight_bytes": {Symbol{Name: "__preempt_count", Addr: 0x28, Size: 8}, PreemptCounter{0x28, 8}, []byte{0, 0, 0, 0, 0, 0, 0, 0x80}, 1 << 63, 0x0f000000, 0x11000000},
		"pcpu_hot":    {Symbol{Name: "pcpu_hot", Addr: 0x35000, Size: 64}, PreemptCounter{0x35008, 4}, []byte{0, 0, 0, 0x80}, 1 << 31, 0x000f0000, 0x110000},
		"no_size":     {Symbol{Name: "__preempt_count", Addr: 0x1fb40}, PreemptCounter{0x1fb40, 4}, []byte{0, 0, 0, 0x80}, 1 << 31, 0x000f0000, 0x110000},
	} {
		p, ok := PreemptCount(func(name string) []Symbol {
			if name == c.symbol.Name {
				return []Symbol{c.symbol}
			}
			return nil
		})
		require.True(t, ok, name)
		require.Equal(t, c.at, p, name)
		require.Equal(t, c.noResched, p.NoResched(), name)
		require.Equal(t, c.noResched, p.Read(c.preemptible), name)
		require.Equal(t, c.preemptible, p.Append(nil, c.noResched), name)
		require.Equal(t, c.hardIRQ, p.HardIRQ(), name)
		require.Equal(t, c.nmi, p.NMI(), name)
	}
	_, ok := PreemptCount(func(string) []Symbol { return nil })
	require.False(t, ok)
}
