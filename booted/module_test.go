package booted

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
	"kprobelab/machine"
	"kprobelab/x86"
)

// TestTablesOfProbesWithoutEnd: lists that lead back into themselves are read up to the bound, once each.
func TestTablesOfProbesWithoutEnd(t *testing.T) {
	const table, first = 0x1000, 0x9000
	for name, to := range map[string]map[x86.Addr]x86.Addr{
		"node":     {table: first, first: first, first + 16: first + 16},
		"siblings": {table: first, first + 16: first + 0x100, first + 0x100: first + 0x100},
	} {
		p := probes{pointer: func(at x86.Addr) x86.Addr { return to[at] }, siblings: 16, addr: 32, missed: 40}
		p.read(table)
		require.Len(t, p.list, bounded.GuestProbes, name)
	}
	p := probes{pointer: func(at x86.Addr) x86.Addr {
		return map[x86.Addr]x86.Addr{table: first, first + 16: 0xa010, 0xa010: 0xb010, 0xb010: first + 16, 0xa028: 7}[at]
	}, siblings: 16, addr: 32, missed: 0x28}
	p.read(table)
	require.Equal(t, []ModuleProbe{{at: 0xa000, Missed: 7}, {at: 0xb000}}, p.list, "the probes of an aggregate")
}

func TestNamesOfModules(t *testing.T) {
	for file, want := range map[string]string{"/x/my-driver.ko": "my_driver", "a.b.ko.xz": "a.b", "plain": "plain", ".ko": ".ko"} {
		require.Equal(t, want, moduleName(file))
	}
}

// TestMemoryOfModules: what is remembered of a module's memory, and watched of what it gave back, has a bound.
func TestMemoryOfModules(t *testing.T) {
	w := &moduleWatch{taken: map[x86.Addr]Allocation{}, freed: map[x86.Addr]Allocation{0x1000: {Size: 1 << 40}, 0x9000: {Size: 12}}}
	for i := range bounded.ModuleAllocations + 3 {
		w.took(Allocation{at: x86.Addr(i + 1)})
	}
	require.Len(t, w.taken, bounded.ModuleAllocations)
	require.True(t, w.forgot)
	require.Len(t, w.freedBytes(), bounded.FreedBytes/machine.MaxWatch+2)
	for i := range 40 {
		w.freed[x86.Addr(i)<<32] = Allocation{Size: 1 << 20}
	}
	for range 200 {
		w.freed[x86.Addr(len(w.freed))<<20] = Allocation{Size: 1 << 20}
	}
	require.Len(t, w.freedBytes(), machine.MaxWatches)
}
