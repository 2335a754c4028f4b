package booted

import (
	"testing"

	"github.com/stretchr/testify/require"

	"kprobelab/internal/bounded"
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
